module kubewright.dev/bench/http

go 1.22
