// The API server's side of the webhook benchmark: sends reviews over TLS on connections that stay open.
//
//	load most DIR PORT KIND COUNT     COUNT reviews, 16 in flight
//	load paced DIR PORT KIND COUNT    COUNT reviews, 200 per second; prints the p99 of their latencies in microseconds
//
// DIR holds ca.pem and the reviews of a kind: KIND-mutate-create.json, KIND-mutate-update.json,
// KIND-validate-create.json and KIND-validate-update.json, which are sent in turn. Every review has to be admitted, and
// only mutate-create has to be answered with a patch. A latency counts from the time at which a review was due.
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	inFlight       = 16
	rate           = 200
	maxConnections = 100 // of paced ones, when the machine stalls
)

var paths = map[string]string{"widget": "bench-example-com-v1-widget", "pod": "-v1-pod"}

type review struct {
	url        string
	body       []byte
	hasPatch   bool
	expectsUID []byte
}

type load struct {
	client  *http.Client
	reviews []review
}

func main() {
	if len(os.Args) != 6 {
		log.Fatal("usage: load most|paced DIR PORT KIND COUNT")
	}
	mode, dir, port, kind := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	count, err := strconv.Atoi(os.Args[5])
	check(err)
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(readFile(dir, "ca.pem")) {
		log.Fatal("ca.pem holds no certificate")
	}
	work := load{client: &http.Client{Transport: &http.Transport{
		// HTTP/1.1, as kube-apiserver calls webhooks.
		TLSClientConfig:     &tls.Config{RootCAs: pool, NextProtos: []string{"http/1.1"}},
		TLSNextProto:        map[string]func(string, *tls.Conn) http.RoundTripper{},
		MaxIdleConnsPerHost: maxConnections,
		MaxConnsPerHost:     maxConnections,
	}}}
	for _, verb := range []string{"mutate", "validate"} {
		for _, operation := range []string{"create", "update"} {
			work.reviews = append(work.reviews, review{
				url:        fmt.Sprintf("https://127.0.0.1:%s/%s-%s?timeout=10s", port, verb, paths[kind]),
				body:       readFile(dir, fmt.Sprintf("%s-%s-%s.json", kind, verb, operation)),
				hasPatch:   verb == "mutate" && operation == "create",
				expectsUID: []byte(fmt.Sprintf(`"uid":"%s-%s-%s"`, kind, verb, operation)),
			})
		}
	}
	switch mode {
	case "most":
		work.most(count)
	case "paced":
		fmt.Println(work.paced(count))
	default:
		log.Fatalf("unknown mode %q", mode)
	}
}

func (work *load) most(count int) {
	numbers := make(chan int)
	var group sync.WaitGroup
	for range inFlight {
		group.Add(1)
		go func() {
			defer group.Done()
			for number := range numbers {
				work.send(number)
			}
		}()
	}
	for number := range count {
		numbers <- number
	}
	close(numbers)
	group.Wait()
}

func (work *load) paced(count int) int64 {
	latencies := make([]time.Duration, count)
	began := time.Now()
	var group sync.WaitGroup
	for number := range count {
		due := began.Add(time.Duration(number) * time.Second / rate)
		time.Sleep(time.Until(due))
		group.Add(1)
		go func() {
			defer group.Done()
			work.send(number)
			latencies[number] = time.Since(due)
		}()
	}
	group.Wait()
	slices.Sort(latencies)
	return latencies[len(latencies)*99/100].Microseconds()
}

func (work *load) send(number int) {
	sent := work.reviews[number%len(work.reviews)]
	request, err := http.NewRequest(http.MethodPost, sent.url, bytes.NewReader(sent.body))
	check(err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, */*")
	request.Header.Set("User-Agent", "kube-apiserver-admission")
	response, err := work.client.Do(request)
	check(err)
	answer, err := io.ReadAll(response.Body)
	check(err)
	response.Body.Close()
	isAdmitted := response.StatusCode == http.StatusOK && bytes.Contains(answer, []byte(`"allowed":true`))
	if !isAdmitted || !bytes.Contains(answer, sent.expectsUID) || bytes.Contains(answer, []byte(`"patch":`)) != sent.hasPatch {
		log.Fatalf("%s: status %d: %s", sent.url, response.StatusCode, answer)
	}
}

func readFile(dir, name string) []byte {
	data, err := os.ReadFile(filepath.Join(dir, name))
	check(err)
	return data
}

func check(err error) {
	if err != nil {
		log.Fatal(strings.TrimSpace(err.Error()))
	}
}
