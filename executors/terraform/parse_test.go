// SPDX-License-Identifier: Apache-2.0

package terraform_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/theseus-gitops/theseus/executors/terraform"
)

func TestAddress(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]struct {
		keys []string
		bare string
	}{
		`terraform_data.x`:                            {nil, "terraform_data.x"},
		`terraform_data.x[0]`:                         {nil, "terraform_data.x"},
		`terraform_data.x["a"]`:                       {[]string{"a"}, "terraform_data.x"},
		`module.n["a.b[\"c\"]"].module.m[1].t.x["d"]`: {[]string{`a.b["c"]`, "d"}, "module.n.module.m.t.x"},
		`data.t.x["a"]`:                               {[]string{"a"}, "data.t.x"},
		`t.x["broken`:                                 {nil, "t.x\"broken"},
	} {
		if got := terraform.Keys(address); !slices.Equal(got, want.keys) {
			t.Errorf("%s has keys %q, want %q", address, got, want.keys)
		}
		if got := terraform.Bare(address); got != want.bare {
			t.Errorf("%s is bare %s, want %s", address, got, want.bare)
		}
	}
}

func FuzzAddress(f *testing.F) {
	f.Add(`module.n["a"].t.x[0]`)
	f.Add(`t["`)
	f.Fuzz(func(t *testing.T, address string) {
		terraform.Keys(address)
		if got := terraform.Bare(address); len(got) > len(address) {
			t.Errorf("bare made %q longer: %q", address, got)
		}
	})
}

func TestMentions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, identity string
		want           bool
	}{
		{"10.0.0.1", "10.0.0.1", true},
		{"https://10.0.0.1:6443/x", "10.0.0.1", true},
		{"10.0.0.11", "10.0.0.1", false},
		{"110.0.0.1", "10.0.0.1", false},
		{"10.0.0.11 10.0.0.1", "10.0.0.1", true},
		{"c-cp-10", "c-cp-1", false},
		{"server c-cp-1 check", "c-cp-1", true},
		{"", "c-cp-1", false},
	} {
		if got := terraform.Mentions(c.text, c.identity); got != c.want {
			t.Errorf("%q mentions %q: %t", c.text, c.identity, got)
		}
	}
}

// The holder is named as Terraform 1.11.4 and its backends tell it.
func TestParseLock(t *testing.T) {
	t.Parallel()
	info := "Lock Info:\n  ID:        5f2d\n  Path:      bucket/key\n  Operation: OperationTypeApply\n  Who:       root@theseus-1\n  Version:   1.11.4\n  Created:   2026-12-01 08:00:00.25 +0000 UTC\n  Info:      \n\n\nTerraform acquires a state lock to protect…"
	held, ok := terraform.ParseLock("Error message: operation error S3: PutObject, RequestID: X1\n" + info)
	if want := (terraform.LockedError{ID: "5f2d", Who: "root@theseus-1", Operation: "OperationTypeApply", Created: time.Date(2026, 12, 1, 8, 0, 0, 250_000_000, time.UTC)}); !ok || held.ID != want.ID || held.Who != want.Who || held.Operation != want.Operation || !held.Created.Equal(want.Created) {
		t.Errorf("got %+v, want %+v", held, want)
	}
	// The http backend gives the lock of the one who asks beside the holder's ID.
	held, ok = terraform.ParseLock("Error message: HTTP remote state already locked: ID=77aa\n" + info)
	if !ok || held.ID != "77aa" || held.Who != "" || !held.Created.IsZero() {
		t.Errorf("of the http backend: %+v", held)
	}
	for _, other := range []string{"", "Error message: connection refused", "Error message: HTTP remote state endpoint requires auth\nLock Info:\n  ID:        \n  Who: x"} {
		if held, ok := terraform.ParseLock(other); ok {
			t.Errorf("%q is a lock: %+v", other, held)
		}
	}
}

const output = `"outputs": {"theseus": {"value": {"contract": 1, "cluster": "c", "endpoint": "e:6443", "shared_addresses": []}}}`

func TestParseState(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ state, want string }{
		"empty":           {"  \n", "there is no Terraform state yet"},
		"new":             {`{"version": 4, "lineage": "x", "outputs": {}, "resources": []}`, "there is no Terraform state yet"},
		"no JSON":         {"PLANTED", "the state is not JSON"},
		"version 5":       {`{"version": 5}`, "the state has format version 5, and only 4 is known"},
		"no registry":     {`{"version": 4, ` + output + `}`, "the state has no terraform_data.machine"},
		"counted":         {`{"version": 4, ` + output + `, "resources": [{"mode": "managed", "type": "terraform_data", "name": "machine", "instances": [{"index_key": 0}]}]}`, "it has no machine name as key"},
		"other input":     {`{"version": 4, ` + output + `, "resources": [{"mode": "managed", "type": "terraform_data", "name": "machine", "instances": [{"index_key": "a", "attributes": {"input": {"value": "x"}}}]}]}`, "its input is no object"},
		"lacks":           {`{"version": 4, ` + output + `, "resources": [{"mode": "managed", "type": "terraform_data", "name": "machine", "instances": [{"index_key": "a", "attributes": {"input": {"value": {"role": "x"}}}}]}]}`, `its input lacks "pool"`},
		"other type":      {`{"version": 4, ` + output + `, "resources": [{"mode": "managed", "type": "terraform_data", "name": "machine", "instances": [{"index_key": "a", "attributes": {"input": {"value": {"serving": "yes"}}}}]}]}`, "another type"},
		"contract absent": {`{"version": 4, "outputs": {"theseus": {"value": {"cluster": "c"}}}}`, `contract ""`},
		"output a text":   {`{"version": 4, "outputs": {"theseus": {"value": "x"}}}`, "it is no object"},
		"no endpoint":     {`{"version": 4, "outputs": {"theseus": {"value": {"contract": 1, "cluster": "c"}}}}`, "endpoint is empty"},
		"wrong field":     {`{"version": 4, "outputs": {"theseus": {"value": {"contract": 1, "machines": []}}}}`, "a field has another type"},
	} {
		_, err := terraform.ParseState([]byte(c.state), "c")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		} else {
			shows(t, name, err.Error())
		}
	}
}

func FuzzState(f *testing.F) {
	f.Add([]byte(`{"version": 4, ` + output + `, "resources": [{"module": "module.a[\"x\"]", "mode": "managed", "type": "t", "name": "n", "instances": [{"index_key": 1.5, "status": "tainted"}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		state, err := terraform.ParseState(data, "c")
		var unfit *terraform.UnfitError
		if (state == nil) == (err == nil) || errors.As(err, &unfit) && unfit.Remedy == "" {
			t.Errorf("got %v, %v", state, err)
		}
	})
}
