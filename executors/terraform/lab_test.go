// SPDX-License-Identifier: Apache-2.0

package terraform_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/theseus-gitops/theseus/executors/terraform"
)

// labRequests stands for the lab's service, and remembers what it is asked for.
type labRequests struct {
	mu  sync.Mutex
	all []string
}

func (l *labRequests) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, r.Method+" "+r.URL.Path)
}

// since gives what was asked for since the last call.
func (l *labRequests) since() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.all
	l.all = nil
	return all
}

// lab makes the yard's module the lab's example, as it stands but for the place of its state.
func (y *yard) lab(change func(text string) string) *labRequests {
	y.t.Helper()
	text, err := os.ReadFile("../../examples/terraform/lab/main.tf")
	if err != nil {
		y.t.Fatal(err)
	}
	y.write("main.tf", change(strings.Replace(string(text), "  backend \"http\" {}\n", "", 1)))
	requests := &labRequests{}
	server := httptest.NewServer(requests)
	y.t.Cleanup(server.Close)
	y.write("lab.auto.tfvars", "cluster = \"c\"\nservice = \""+server.URL+"\"\nendpoint = \"10.213.0.1:6443\"\n")
	return requests
}

// A member for each machine that serves: the guard lets every step of the example's roll pass, and a serving step takes
// the member of its machine and nothing else.
func TestLabExampleIsAllowed(t *testing.T) {
	withTerraform(t, func(y *yard) {
		requests := y.lab(func(text string) string { return text })
		y.seed("c-cp-1", "c-cp-2")
		want := []string{"idle check", "add c-cp-rehearsal", "serving c-cp-1", "destroy c-cp-1"}
		if got := rehearse(y); !slices.Equal(got, want) {
			y.t.Errorf("rehearsed %q, want %q", got, want)
		}
		requests.since()
		m := y.open()
		state := y.state(m)
		state = y.do(m, terraform.Step{Kind: terraform.Serve, Machine: "c-cp-1", Have: state.Registry, Serving: false})
		if got := requests.since(); !slices.Equal(got, []string{"DELETE /endpoint/c-cp-1"}) {
			y.t.Errorf("leaving the endpoint asked for %q", got)
		}
		state = y.do(m, terraform.Step{Kind: terraform.Serve, Machine: "c-cp-1", Have: state.Registry, Serving: true})
		if got := requests.since(); !slices.Equal(got, []string{"PUT /endpoint/c-cp-1"}) {
			y.t.Errorf("joining the endpoint asked for %q", got)
		}
		state = y.do(m, terraform.Step{Kind: terraform.Serve, Machine: "c-cp-1", Have: state.Registry, Serving: false})
		requests.since()
		y.do(m, terraform.Step{Kind: terraform.Destroy, Machine: "c-cp-1", Have: state.Registry})
		if got := requests.since(); !slices.Equal(got, []string{"DELETE /machines/c-cp-1"}) {
			y.t.Errorf("destroying asked for %q", got)
		}
	})
}

// A member that is not listed stays, and the refusal says what to do.
func TestLabExampleWithoutListing(t *testing.T) {
	withTerraform(t, func(y *yard) {
		y.lab(func(text string) string {
			return strings.Replace(text, `shared_addresses = ["terraform_data.endpoint"]`, "shared_addresses = []", 1)
		})
		have := y.seed("c-cp-1", "c-cp-2")
		p := y.plan(y.open(), terraform.Step{Kind: terraform.Serve, Machine: "c-cp-1", Have: have, Serving: false})
		want := `terraform_data.endpoint["c-cp-1"]: delete: only what belongs to the endpoint may change, and terraform_data.endpoint is not listed in shared_addresses of output theseus; ` +
			"if it belongs to the endpoint, list it there and apply that before the roll (its key is gone)\n"
		if got := verdict(p.Offences); got != want {
			y.t.Errorf("got:\n%swant:\n%s", got, want)
		}
	})
}
