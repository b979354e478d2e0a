// The versions are in the .mod files: go build -modfile=v1.36.3.mod.
module github.com/theseus-gitops/theseus/test/lab/parts/kubernetes

go 1.26.0
