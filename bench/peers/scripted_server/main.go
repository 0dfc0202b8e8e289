// A server that only seems to hold Widgets: scripted_server DIR COUNT.
//
// It makes up COUNT Widgets of 3 KB when they are listed or watched, so that 100,000 of them cost it next to nothing,
// and answers what an operator asks besides. DIR holds ca.pem, server.pem and server-key.pem. It prints a kubeconfig in
// one line. A line "emit RATE TOTAL" on standard input makes it change TOTAL Widgets in turn, RATE per second, each
// stamped with the time at which it is handed to the watches; "emitted" on standard output reports that this is done.
// It ends when its standard input does.
package main

import (
	"bufio"
	"crypto/tls"
	"encoding/base64"
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
	"time"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: scripted_server DIR COUNT")
	}
	dir := os.Args[1]
	count, err := strconv.Atoi(os.Args[2])
	check(err)
	certificate, err := tls.LoadX509KeyPair(filepath.Join(dir, "server.pem"), filepath.Join(dir, "server-key.pem"))
	check(err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	authority, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	check(err)
	script := &script{count: count, version: count + 1, watches: map[chan []byte]struct{}{}}
	server := &http.Server{Handler: script, TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}}}
	go func() { check(server.ServeTLS(listener, "", "")) }()
	fmt.Println(kubeconfig("https://"+listener.Addr().String(), authority))
	commands := bufio.NewScanner(os.Stdin)
	for commands.Scan() {
		var rate, total int
		_, err := fmt.Sscanf(commands.Text(), "emit %d %d", &rate, &total)
		check(err)
		script.emit(rate, total)
		fmt.Println("emitted")
	}
}

func kubeconfig(address string, authority []byte) string {
	data := base64.StdEncoding.EncodeToString(authority)
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"bench",`+
		`"clusters":[{"name":"bench","cluster":{"server":%q,"certificate-authority-data":%q}}],`+
		`"users":[{"name":"bench","user":{"token":"bench"}}],`+
		`"contexts":[{"name":"bench","context":{"cluster":"bench","user":"bench"}}]}`, address, data)
}

// script is what the server says.
type script struct {
	count   int
	mutex   sync.Mutex
	version int
	watches map[chan []byte]struct{}
}

func (script *script) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	if request.Method != http.MethodGet {
		echo(response, request)
		return
	}
	response.Header().Set("Content-Type", "application/json")
	if request.URL.Path == "/apis/bench.example.com/v1/widgets" {
		if watching := request.URL.Query().Get("watch"); watching == "true" || watching == "1" {
			script.watch(response, request)
		} else {
			script.list(response, request)
		}
		return
	}
	answer, known := discovery[request.URL.Path]
	if !known {
		response.WriteHeader(http.StatusNotFound)
		answer = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`
	}
	_, _ = io.WriteString(response, answer)
}

// watch streams the initial list when asked to, and then what is emitted.
func (script *script) watch(response http.ResponseWriter, request *http.Request) {
	lines := make(chan []byte, 4096)
	script.mutex.Lock()
	script.watches[lines] = struct{}{}
	version := script.version
	script.mutex.Unlock()
	defer func() {
		script.mutex.Lock()
		delete(script.watches, lines)
		script.mutex.Unlock()
	}()
	controller := http.NewResponseController(response)
	output := bufio.NewWriterSize(response, 64<<10)
	if request.URL.Query().Get("sendInitialEvents") == "true" {
		for index := range script.count {
			_, _ = output.Write(event("ADDED", widget(index, index+1, "")))
		}
		_, _ = fmt.Fprintf(output, `{"type":"BOOKMARK","object":{"kind":"Widget","apiVersion":"bench.example.com/v1",`+
			`"metadata":{"resourceVersion":"%d","annotations":{"k8s.io/initial-events-end":"true"}}}}`+"\n", version)
	}
	for {
		if output.Flush() != nil || controller.Flush() != nil {
			return
		}
		select {
		case <-request.Context().Done():
			return
		case line := <-lines:
			_, _ = output.Write(line)
		}
		// What waits already goes out with it, as kube-apiserver does it.
		for range len(lines) {
			_, _ = output.Write(<-lines)
		}
	}
}

func (script *script) list(response http.ResponseWriter, request *http.Request) {
	parameters := request.URL.Query()
	first, _ := strconv.Atoi(parameters.Get("continue"))
	end := script.count
	next := ""
	if limit, _ := strconv.Atoi(parameters.Get("limit")); limit > 0 && first+limit < end {
		end = first + limit
		next = strconv.Itoa(end)
	}
	output := bufio.NewWriterSize(response, 64<<10)
	_, _ = fmt.Fprintf(output, `{"apiVersion":"bench.example.com/v1","items":[`)
	for index := first; index < end; index++ {
		if index > first {
			_ = output.WriteByte(',')
		}
		_, _ = output.Write(widget(index, index+1, ""))
	}
	_, _ = fmt.Fprintf(output, `],"kind":"WidgetList","metadata":{"continue":%q,"resourceVersion":"%d"}}`,
		next, script.count+1)
	_ = output.Flush()
}

// emit changes Widgets in turn. It keeps to the rate on average: what is late is sent at once.
func (script *script) emit(rate, total int) {
	began := time.Now()
	for number := range total {
		due := began.Add(time.Duration(number) * time.Second / time.Duration(rate))
		time.Sleep(time.Until(due))
		script.mutex.Lock()
		script.version++
		stamp := strconv.FormatInt(time.Now().UnixNano(), 10)
		line := event("MODIFIED", widget(number%script.count, script.version, stamp))
		for watch := range script.watches {
			watch <- line
		}
		script.mutex.Unlock()
	}
}

func event(kind string, object []byte) []byte {
	return fmt.Appendf(nil, `{"type":%q,"object":%s}`+"\n", kind, object)
}

const annotations = `"annotations":{"bench.example.com/stamp":"%s"},`
const template = `{"apiVersion":"bench.example.com/v1","kind":"Widget","metadata":{%s` +
	`"creationTimestamp":"2026-01-01T00:00:00Z","generation":1,"labels":{"app":"bench"},"managedFields":[{` +
	`"apiVersion":"bench.example.com/v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{".":{},` +
	`"f:app":{}}},"f:spec":{".":{},"f:payload":{},"f:size":{}}},"manager":"kubewright","operation":"Update",` +
	`"time":"2026-01-01T00:00:00Z"}],"name":"widget-%06d","namespace":"default","resourceVersion":"%d",` +
	`"uid":"00000000-0000-4000-8000-%012d"},"spec":{"payload":"%s","size":%d}}`

// widget is a Widget as kube-apiserver writes it, of 3 KB.
func widget(index, version int, stamp string) []byte {
	head := ""
	if stamp != "" {
		head = fmt.Sprintf(annotations, stamp)
	}
	return fmt.Appendf(nil, template, head, index, version, index, payload(index), index%100)
}

var words = strings.Fields("amber basin cedar delta ember fjord grove haven islet jetty knoll larch marsh north ocean " +
	"pearl quartz ridge shore thorn umber vale wharf xylem yield zephyr")

// payload is text of 2,400 characters, different for each Widget.
func payload(index int) string {
	var text strings.Builder
	random := uint64(index)*6364136223846793005 + 1442695040888963407
	for text.Len() < 2400 {
		random = random*6364136223846793005 + 1442695040888963407
		text.WriteString(words[random>>33%uint64(len(words))])
		text.WriteByte(' ')
	}
	return text.String()[:2400]
}

var discovery = map[string]string{
	"/version": `{"major":"1","minor":"36","gitVersion":"v1.36.4"}`,
	"/api":     `{"kind":"APIVersions","versions":["v1"]}`,
	"/api/v1":  `{"kind":"APIResourceList","groupVersion":"v1","resources":[]}`,
	"/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"bench.example.com","versions":[{"groupVersion":` +
		`"bench.example.com/v1","version":"v1"}],"preferredVersion":{"groupVersion":"bench.example.com/v1","version":"v1"}}]}`,
	"/apis/bench.example.com": `{"kind":"APIGroup","apiVersion":"v1","name":"bench.example.com","versions":[{"groupVersion":` +
		`"bench.example.com/v1","version":"v1"}],"preferredVersion":{"groupVersion":"bench.example.com/v1","version":"v1"}}`,
	"/apis/bench.example.com/v1": `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"bench.example.com/v1",` +
		`"resources":[{"name":"widgets","singularName":"widget","namespaced":true,"kind":"Widget",` +
		`"verbs":["create","delete","get","list","patch","update","watch"]}]}`,
}

// echo answers a write with what was written, and an access review with yes.
func echo(response http.ResponseWriter, request *http.Request) {
	var object map[string]any
	if err := json.NewDecoder(request.Body).Decode(&object); err != nil {
		http.Error(response, err.Error(), http.StatusBadRequest)
		return
	}
	if strings.HasSuffix(request.URL.Path, "accessreviews") {
		object["status"] = map[string]any{"allowed": true}
	}
	response.Header().Set("Content-Type", "application/json")
	response.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(response).Encode(object)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
