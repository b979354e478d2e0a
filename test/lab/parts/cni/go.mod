// The versions are in the .mod files: go build -modfile=v1.10.0.mod.
module github.com/theseus-gitops/theseus/test/lab/parts/cni

go 1.26.8
