// The versions are in the .mod files: go build -modfile=v3.6.16.mod.
module github.com/theseus-gitops/theseus/test/lab/parts/etcd

go 1.26.8
