// The versions are in the .mod files: go build -modfile=v1.14.6.mod.
module github.com/theseus-gitops/theseus/test/lab/parts/coredns

go 1.26.8
