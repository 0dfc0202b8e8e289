module example.com/kubewright/bench/scriptedserver

go 1.26.0
