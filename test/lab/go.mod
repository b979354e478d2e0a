module github.com/theseus-gitops/theseus/test/lab

go 1.26.8
