module kubewright/bench/http

go 1.22
