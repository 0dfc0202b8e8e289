module kubewright/bench/webhooks/load

go 1.22
