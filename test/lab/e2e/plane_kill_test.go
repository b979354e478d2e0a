// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/theseus-gitops/theseus/test/lab/cluster"
)

// kills is how often a plane is killed while it rolls.
const kills = 20

// Killed again and again, at moments spread over whole rolls, and rerun each time: the plane becomes as wanted, with no
// machine twice, nothing left, and no lock that needs a person. Every other time Terraform is killed along with Theseus, as
// when a pod ends.
func TestKilledWhileRolling(t *testing.T) {
	full(t)
	for _, machines := range []int{3, 1} {
		t.Run(fmt.Sprintf("%d machines", machines), func(t *testing.T) {
			p := newPlane(t, cluster.Options{Name: fmt.Sprintf("e2e-kill-%d", machines), Machines: machines})
			w := wanted{kubernetes: oldVersion, image: p.image("debian-12", oldVersion), etcd: oldEtcd, coreDNS: oldTag, replicas: machines}
			p.asks(w, "as it is")
			p.run(0, "reconcile")
			before := p.machines()
			load := write(t, p.Kubeconfig)
			for killed, rolls := 0, 0; killed < kills; rolls++ {
				// A roll that gets through before it was killed often enough is followed by another one.
				w.more = fmt.Sprintf("    values: {roll: %q}\n", fmt.Sprint(rolls))
				p.asks(w, "other values")
				for killed < kills && p.killed(time.Duration(2+killed*7%23)*time.Second, killed%2 == 1) {
					killed++
					p.expireLease()
				}
				t.Logf("killed %d times, in roll %d", killed, rolls+1)
			}
			p.converges()
			t.Logf("%d failed writes", load.stop(t))
			p.is(w, "Linux 12")
			for _, name := range before {
				for _, now := range p.machines() {
					if now == name {
						t.Errorf("machine %s is still there", name)
					}
				}
			}
		})
	}
}

// full skips what make test-full runs alone.
func full(t *testing.T) {
	t.Helper()
	if os.Getenv("THESEUS_E2E_FULL") == "" {
		t.Skip("a long scenario: make test-full runs it")
	}
}

// killed runs reconcile and kills it after a while, with its children or without; false when it ended before.
func (p *plane) killed(after time.Duration, withChildren bool) bool {
	p.t.Helper()
	cmd := p.command("reconcile")
	var out output
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	timer := time.AfterFunc(after, func() {
		victims := []int{cmd.Process.Pid}
		if withChildren {
			victims = append(victims, descendants(cmd.Process.Pid)...)
		}
		for _, pid := range victims {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	err := cmd.Wait()
	timer.Stop()
	noSecret(p.t, "output", out.String())
	if cmd.ProcessState.Exited() {
		p.t.Logf("ended by itself: %v\n%s", err, out.String())
		return false
	}
	p.t.Logf("killed after %s: %s", after, lastLine(out.String()))
	return true
}

// descendants are the processes that a process started, and those that they did.
func descendants(of int) (out []int) {
	children := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		// The second field is the command in parentheses and may hold blanks: count from behind it.
		if fields := strings.Fields(string(data)[strings.LastIndexByte(string(data), ')')+1:]); len(fields) > 1 {
			parent, _ := strconv.Atoi(fields[1])
			children[parent] = append(children[parent], pid)
		}
	}
	for _, pid := range children[of] {
		out = append(append(out, pid), descendants(pid)...)
	}
	return out
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// output is written by two copiers at once.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// expireLease makes the dead run's Lease as old as it will be in a few minutes.
func (p *plane) expireLease() {
	p.t.Helper()
	leases := p.client.CoordinationV1().Leases(system)
	lease, err := leases.Get(p.t.Context(), "theseus", metav1.GetOptions{})
	if err != nil {
		return // killed before it took the Lease
	}
	past := metav1.NewMicroTime(time.Now().Add(-time.Hour))
	lease.Spec.RenewTime = &past
	if _, err := leases.Update(p.t.Context(), lease, metav1.UpdateOptions{}); err != nil {
		p.t.Fatal(err)
	}
}

// converges runs reconcile until there is nothing to do, as the next slots of a CronJob would.
func (p *plane) converges() {
	p.t.Helper()
	const most = 6
	for range most {
		r := p.theseus("reconcile")
		noSecret(p.t, "output", r.out+r.err)
		if r.code == 0 && p.theseus("plan").code == 0 {
			return
		}
	}
	p.t.Fatalf("not as wanted after %d more passes", most)
}
