// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// account is where the time of a run went: each second belongs to a named wait, to Terraform, or to Theseus itself.
type account struct {
	total time.Duration
	spent map[string]time.Duration
	calls map[string]int // of Terraform, by its command
	// cpu and memory are of Theseus alone.
	cpu    time.Duration
	memory int64
}

const (
	ourselves = "Theseus itself"
	children  = "Terraform"
)

// stretch is a part of the run between two things that it told.
type stretch struct {
	from, to time.Time
	what     string
}

// call is one run of Terraform, as its wrapper wrote it down.
type call struct {
	stretch
	cpu time.Duration
}

// wrap is a program that runs Terraform and writes down when, and how much it computed.
func (p *plane) wrap(program string) (wrapper, log string) {
	p.t.Helper()
	dir := p.t.TempDir()
	wrapper, log = filepath.Join(dir, filepath.Base(program)), filepath.Join(dir, "calls")
	script := fmt.Sprintf(`#!/bin/bash
begin=$(date +%%s.%%N)
%[1]s "$@"
code=$?
times >%[2]s.$$
echo "$1 $begin $(date +%%s.%%N) $(tail -n 1 %[2]s.$$)" >>%[2]s
rm %[2]s.$$
exit $code
`, program, log)
	if err := os.WriteFile(wrapper, []byte(script), 0o700); err != nil {
		p.t.Fatal(err)
	}
	return wrapper, log
}

func readCalls(t *testing.T, log string) []call {
	t.Helper()
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	var out []call
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line) // COMMAND BEGIN END 0m1.2s 0m0.1s
		if len(fields) != 5 {
			t.Fatalf("a call of Terraform was written down as %q", line)
		}
		out = append(out, call{stretch{seconds(t, fields[1]), seconds(t, fields[2]), fields[0]}, minutes(t, fields[3]) + minutes(t, fields[4])})
	}
	return out
}

func seconds(t *testing.T, text string) time.Time {
	t.Helper()
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.UnixMicro(int64(f * 1e6))
}

func minutes(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// stretches reads a run's log.
func stretches(t *testing.T, log string, began, ended time.Time) []stretch {
	t.Helper()
	out := []stretch{{from: began, what: ourselves}}
	next := func(at time.Time, what string) {
		out[len(out)-1].to = at
		out = append(out, stretch{from: at, what: what})
	}
	scan := bufio.NewScanner(strings.NewReader(log))
	for scan.Scan() {
		fields := strings.SplitN(scan.Text(), "\t", 4)
		if len(fields) < 4 {
			continue
		}
		at, err := time.Parse("2006-01-02T15:04:05.000Z", fields[0])
		if err != nil {
			continue
		}
		switch fields[2] {
		case "step started":
			next(at, cmp.Or(waitInStep(value(fields[3], "step")), ourselves))
		case "step done", "step failed":
			next(at, ourselves)
		case "waiting":
			if what := waitFor(value(fields[3], "why")); what != "" {
				next(at, what)
			}
		}
	}
	out[len(out)-1].to = ended
	return out
}

// value is a field of a log line's JSON.
func value(object, key string) string {
	_, rest, _ := strings.Cut(object, `"`+key+`": "`)
	text, _, _ := strings.Cut(rest, `"`)
	return text
}

// waitInStep is what a step of that name waits for in the cluster, empty when it does not.
func waitInStep(step string) string {
	return map[string]string{
		"obtain-credentials": "the credentials pod", "drain": "pods that end", "leave-endpoint": "an API server that ends",
		"canary-coredns": "CoreDNS's canary", "verify": "CoreDNS's answers",
	}[step]
}

// waitFor names a wait by its reason; empty when it is news of a step under way.
func waitFor(why string) string {
	for _, w := range [][2]string{
		{"it has no Node", "boot and join, up to the Node"}, {"is joining", "join, from the Node on"}, {"must stay healthy", "stable"},
		{"volumes", "volumes"}, {"the endpoint still leads", "endpoint"}, {"kube-proxy", "kube-proxy"}, {"CoreDNS", "CoreDNS's pods"},
		{"would be healthy", "etcd"}, {"healthy", "health"},
	} {
		if strings.Contains(why, w[0]) {
			return w[1]
		}
	}
	return ""
}

// settle makes the account of a run.
func settle(all []stretch, calls []call) account {
	a := account{spent: map[string]time.Duration{}, calls: map[string]int{}}
	for _, s := range all {
		a.spent[s.what] += s.to.Sub(s.from)
		a.total += s.to.Sub(s.from)
	}
	for _, c := range calls {
		a.calls[c.what]++
		for _, s := range all {
			if both := overlap(s, c.stretch); both > 0 {
				a.spent[s.what] -= both
				a.spent[children] += both
			}
		}
		a.cpu -= c.cpu
	}
	return a
}

func overlap(a, b stretch) time.Duration {
	from, to := a.from, a.to
	if b.from.After(from) {
		from = b.from
	}
	if b.to.Before(to) {
		to = b.to
	}
	return to.Sub(from)
}

func (a account) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%.1f s in all; Theseus used %.2f s of CPU and %d MiB of memory\n", a.total.Seconds(), a.cpu.Seconds(), a.memory>>20)
	for _, what := range slices.SortedFunc(maps.Keys(a.spent), func(x, y string) int { return cmp.Compare(a.spent[y], a.spent[x]) }) {
		fmt.Fprintf(&out, "%8.1f s %5.1f %%  %s\n", a.spent[what].Seconds(), 100*a.spent[what].Seconds()/a.total.Seconds(), what)
	}
	fmt.Fprintf(&out, "%d calls of Terraform: %v", a.sum(), a.calls)
	return out.String()
}

// sum counts the calls of Terraform.
func (a account) sum() (n int) {
	for _, calls := range a.calls {
		n += calls
	}
	return n
}

// measured runs reconcile to its end and tells where its time went.
func (p *plane) measured(log string) (result, account) {
	p.t.Helper()
	cmd := p.command("reconcile")
	var out, errs output
	cmd.Stdout, cmd.Stderr = &out, &errs
	began := time.Now()
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	var memory int64
	done := make(chan struct{})
	sampled := make(chan struct{})
	go func() {
		defer close(sampled)
		for {
			if m, ok := highWater(cmd.Process.Pid); ok {
				memory = max(memory, m)
			}
			select {
			case <-done:
				return
			case <-time.After(200 * time.Millisecond):
			}
		}
	}()
	err := cmd.Wait()
	ended := time.Now()
	close(done)
	<-sampled
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	r := result{code: cmd.ProcessState.ExitCode(), out: out.String(), err: errs.String()}
	p.t.Logf("theseus reconcile → exit %d in %.1f s\n%s%s", r.code, ended.Sub(began).Seconds(), r.out, r.err)
	a := settle(stretches(p.t, r.err, began, ended), readCalls(p.t, log))
	a.cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime() // which count its children, too
	a.memory = memory
	return r, a
}

// highWater is the most memory that a process had so far; false once it is gone.
func highWater(pid int) (int64, bool) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, false
	}
	_, rest, found := strings.Cut(string(data), "VmHWM:")
	kib, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	n, err := strconv.ParseInt(kib, 10, 64)
	return n << 10, found && err == nil
}
