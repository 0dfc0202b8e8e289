// Command clients is what Go programs usually are in a cluster, and nothing else: an informer and a controller.
//
//	clients informer NAMESPACE
//	clients manager NAMESPACE
//
// KUBECONFIG names the server. Every event is printed on standard output, one line each.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	commands := map[string]func(context.Context, *rest.Config, string) error{
		"informer": runInformers,
		"manager":  runManager,
	}
	if len(os.Args) != 3 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: clients informer|manager NAMESPACE")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err == nil {
		err = commands[os.Args[1]](ctx, config, os.Args[2])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
