// The Go side of the HTTP benchmark: one server, and the clients that kubewright's transport is measured against.
//
//	peer server DIR              prints its address; answers PUT /object and GET /watch?lines=N
//	peer put DIR ADDRESS N       N PUTs of 2 KB, 16 in flight, over HTTP/1.1
//	peer watch DIR ADDRESS N     N watch lines, decoded as client-go does
//
// DIR holds ca.pem, server.pem, server-key.pem, client.pem and client-key.pem. A client prints the microseconds of CPU
// that its work took, without the start of the process.
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

const inFlight = 16

type metadata struct {
	Name            string            `json:"name"`
	Namespace       string            `json:"namespace"`
	UID             string            `json:"uid"`
	ResourceVersion string            `json:"resourceVersion"`
	Labels          map[string]string `json:"labels"`
	OwnerReferences []json.RawMessage `json:"ownerReferences"`
}

type object struct {
	Metadata metadata `json:"metadata"`
}

type watchEvent struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

func main() {
	if len(os.Args) < 3 {
		log.Fatal("usage: peer server|put|watch DIR [ADDRESS N]")
	}
	command, dir := os.Args[1], os.Args[2]
	if command == "server" {
		serve(dir)
		return
	}
	address := os.Args[3]
	count, err := strconv.Atoi(os.Args[4])
	check(err)
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig:     clientTLS(dir),
		TLSNextProto:        map[string]func(string, *tls.Conn) http.RoundTripper{}, // HTTP/1.1 only
		DisableCompression:  true,
		MaxIdleConnsPerHost: inFlight,
	}}
	switch command {
	case "put":
		body := readFile(dir, "put.json")
		puts(client, address, inFlight*4, body)
		before := cpu()
		puts(client, address, count, body)
		fmt.Println(cpu() - before)
	case "watch":
		watch(client, address, 1000)
		before := cpu()
		watch(client, address, count)
		fmt.Println(cpu() - before)
	default:
		log.Fatalf("unknown command %q", command)
	}
}

func puts(client *http.Client, address string, count int, body []byte) {
	work := make(chan struct{})
	var group sync.WaitGroup
	for i := 0; i < inFlight; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for range work {
				request, err := http.NewRequest(http.MethodPut, "https://"+address+"/object", bytes.NewReader(body))
				check(err)
				request.Header.Set("Content-Type", "application/json")
				request.Header.Set("Accept", "application/json")
				response, err := client.Do(request)
				check(err)
				answer, err := io.ReadAll(response.Body)
				check(err)
				response.Body.Close()
				if response.StatusCode != http.StatusOK || len(answer) != len(body) {
					log.Fatalf("status %d, %d bytes", response.StatusCode, len(answer))
				}
			}
		}()
	}
	for i := 0; i < count; i++ {
		work <- struct{}{}
	}
	close(work)
	group.Wait()
}

func watch(client *http.Client, address string, count int) {
	response, err := client.Get(fmt.Sprintf("https://%s/watch?lines=%d", address, count))
	check(err)
	defer response.Body.Close()
	decoder := json.NewDecoder(response.Body)
	seen := 0
	for {
		var event watchEvent
		if err := decoder.Decode(&event); err == io.EOF {
			break
		} else {
			check(err)
		}
		var decoded object
		check(json.Unmarshal(event.Object, &decoded))
		if event.Type != "MODIFIED" || decoded.Metadata.Name == "" {
			log.Fatalf("unexpected event %q", event.Type)
		}
		seen++
	}
	if seen != count {
		log.Fatalf("%d lines instead of %d", seen, count)
	}
}

func serve(dir string) {
	line := readFile(dir, "watch.json")
	mux := http.NewServeMux()
	mux.HandleFunc("/object", func(writer http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return
		}
		header := writer.Header()
		// As many header fields as a kube-apiserver sends.
		header.Set("Audit-Id", "6f0a1c1e-5f0e-4f55-9d5c-0c9f6d1c8a11")
		header.Set("Cache-Control", "no-cache, private")
		header.Set("Content-Type", "application/json")
		header.Set("X-Kubernetes-Pf-Flowschema-Uid", "2d5b2b53-7c11-4b7e-9c3c-5d1c3c0a6b02")
		header.Set("X-Kubernetes-Pf-Prioritylevel-Uid", "a7a5ba0c-1f0d-4c55-8c0e-6a0b1a9f3d33")
		header.Set("Content-Length", strconv.Itoa(len(body)))
		writer.Write(body)
	})
	mux.HandleFunc("/watch", func(writer http.ResponseWriter, request *http.Request) {
		count, _ := strconv.Atoi(request.URL.Query().Get("lines"))
		writer.Header().Set("Content-Type", "application/json")
		flusher := writer.(http.Flusher)
		for i := 1; i <= count; i++ {
			if _, err := writer.Write(line); err != nil {
				return
			}
			// A kube-apiserver flushes when no further event is ready; bursts of 10 stand for that.
			if i%10 == 0 {
				flusher.Flush()
			}
		}
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	fmt.Println(listener.Addr())
	// The server belongs to the process that started it, and ends with it.
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	server := &http.Server{
		Handler:      mux,
		TLSConfig:    &tls.Config{ClientCAs: pool(dir), ClientAuth: tls.RequireAndVerifyClientCert, NextProtos: []string{"http/1.1"}},
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	log.Fatal(server.ServeTLS(listener, filepath.Join(dir, "server.pem"), filepath.Join(dir, "server-key.pem")))
}

func clientTLS(dir string) *tls.Config {
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "client.pem"), filepath.Join(dir, "client-key.pem"))
	check(err)
	return &tls.Config{RootCAs: pool(dir), Certificates: []tls.Certificate{pair}}
}

func pool(dir string) *x509.CertPool {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(readFile(dir, "ca.pem")) {
		log.Fatal("ca.pem holds no certificate")
	}
	return pool
}

func readFile(dir, name string) []byte {
	data, err := os.ReadFile(filepath.Join(dir, name))
	check(err)
	return data
}

// cpu is the user and system time of this process, in microseconds.
func cpu() int64 {
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return (usage.Utime.Sec+usage.Stime.Sec)*1_000_000 + int64(usage.Utime.Usec+usage.Stime.Usec)
}

func check(err error) {
	if err != nil {
		log.Fatal(strings.TrimSpace(err.Error()))
	}
}
