// The versions are in the .mod files: go build -modfile=v1.12.6.mod.
module github.com/theseus-gitops/theseus/test/lab/parts/opentofu

go 1.26.8
