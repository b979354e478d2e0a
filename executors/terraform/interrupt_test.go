// SPDX-License-Identifier: Apache-2.0

package terraform_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/theseus-gitops/theseus/executors/terraform"
)

// A cancelled apply is interrupted, not killed: what was made is in the state, the lock is released, and the state is
// read again (hashicorp/terraform-exec#332, #334, #454; gruntwork-io/terragrunt#5423).
func TestCancelledApply(t *testing.T) {
	withTerraform(t, func(y *yard) {
		t := y.t
		y.slow()
		have := y.seed("c-cp-1")
		y.holdSlow()
		m := y.open()
		p := y.plan(m, addStep(have, "c-cp-2"))
		ctx, cancel := context.WithCancelCause(t.Context())
		shutdown := errors.New("the pod is shut down")
		go func() {
			for !y.has("begun") {
				time.Sleep(20 * time.Millisecond)
			}
			cancel(shutdown)
		}()
		state, err := m.Apply(ctx, p)
		if !errors.Is(err, shutdown) || !strings.Contains(err.Error(), "apply: interrupted (the pod is shut down)") {
			t.Errorf("Apply: %v", err)
		}
		if state == nil || len(state.Instances["c-cp-2"]) == 0 {
			t.Fatalf("the state after the interruption lacks what was made: %+v", state)
		}
		if y.server.locked() {
			t.Error("the lock was left")
		}
		if left := y.leftOver(); len(left) > 0 && strings.Contains(strings.Join(left, " "), "plan-") {
			t.Errorf("left over: %q", left)
		}
	})
}

// What was cancelled before it began does not begin, and the error can be printed (a nil inside of terraform-exec's
// can't).
func TestCancelledBeforeTheStart(t *testing.T) {
	withTerraform(t, func(y *yard) {
		t := y.t
		have := y.seed("c-cp-1")
		m := y.open()
		p := y.plan(m, addStep(have, "c-cp-2"))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := m.State(ctx); !errors.Is(err, context.Canceled) || err.Error() == "" {
			t.Errorf("State: %v", err)
		}
		state, err := m.Apply(ctx, p)
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "apply was not started") {
			t.Errorf("Apply: %v", err)
		}
		if state == nil || len(state.Registry) != 1 {
			t.Errorf("the state: %+v", state)
		}
	})
}

// TestMain lets this test's program be the process that is killed, or one that does nothing.
func TestMain(m *testing.M) {
	if os.Getenv("THESEUS_TEST_IDLE") != "" {
		time.Sleep(time.Hour)
	}
	if dir := os.Getenv("THESEUS_TEST_APPLY_IN"); dir != "" {
		os.Exit(applyAsChild(dir))
	}
	os.Exit(m.Run())
}

// applyAsChild is the part of TestKilled that is killed.
func applyAsChild(dir string) int {
	ctx := context.Background()
	m, err := terraform.Open(ctx, terraform.Options{
		Dir: dir, Binary: os.Getenv("THESEUS_TEST_BINARY"), Cluster: "c", TempDir: os.Getenv("THESEUS_TEST_TEMP"),
		Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	step := addStep(terraform.Machines{"c-cp-1": machine()}, "c-cp-2")
	step.UserData = planted("user data")
	p, err := m.Plan(ctx, step)
	if err == nil {
		_, err = m.Apply(ctx, p)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// child starts this test's program as a process that applies, and waits until the machine is half-way made.
func (y *yard) child() *exec.Cmd {
	y.t.Helper()
	cmd := exec.CommandContext(y.t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "THESEUS_TEST_APPLY_IN="+y.dir, "THESEUS_TEST_BINARY="+y.binary, "THESEUS_TEST_TEMP="+y.temp)
	cmd.Stderr = y.t.Output()
	if err := cmd.Start(); err != nil {
		y.t.Fatal(err)
	}
	eventually(y.t, "the apply is half-way", func() bool { return y.has("begun") })
	return cmd
}

// We are killed in the middle of an apply: Terraform ends its work all the same, so that no lock and no machine that
// nobody knows is left (coder/coder#10318, flux-iac/tofu-controller#531). The next run removes the folder with the
// secrets, but not as long as that Terraform needs it.
func TestKilled(t *testing.T) {
	withTerraform(t, func(y *yard) {
		t := y.t
		y.slow()
		y.seed("c-cp-1")
		y.holdSlow()
		child := y.child()
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = child.Wait()

		m := y.open()
		if left := y.leftOver(); !strings.Contains(strings.Join(left, " "), "plan-1") {
			t.Errorf("the folder of a Terraform that still works was removed: %q", left)
		}
		var locked *terraform.LockedError
		if _, err := m.Idle(t.Context(), terraform.Machines{"c-cp-1": machine()}); !errors.As(err, &locked) {
			t.Errorf("beside a Terraform that still works: %v", err)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		y.write("go", "")
		eventually(t, "the orphaned Terraform has released its lock", func() bool { return !y.server.locked() })
		m = y.open()
		if state := y.state(m); len(state.Instances["c-cp-2"]) != 3 || state.Broken("c-cp-2") {
			t.Errorf("the machine is not whole: %+v", state)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "nothing is left over", func() bool {
			m := y.open()
			_ = m.Close()
			return len(y.leftOver()) == 0
		})
	})
}

// Terraform itself is killed: its lock stays. It is named with its holder, and released only by its own ID
// (flux-iac/tofu-controller#1876, #560).
func TestTerraformKilled(t *testing.T) {
	withTerraform(t, func(y *yard) {
		t := y.t
		y.slow()
		have := y.seed("c-cp-1")
		y.holdSlow()
		child := y.child()
		y.killTerraform(child.Process.Pid)
		if err := child.Wait(); err == nil {
			t.Error("an apply whose Terraform was killed has worked")
		}
		y.write("go", "")
		m := y.open()
		_, err := m.Idle(t.Context(), have)
		var locked *terraform.LockedError
		if !errors.As(err, &locked) || locked.ID == "" || !strings.Contains(locked.Who, "@") || locked.Operation != "OperationTypeApply" || time.Since(locked.Created) > time.Hour {
			t.Fatalf("Idle: %#v %v", locked, err)
		}
		if err := m.Unlock(t.Context(), "00000000-0000-0000-0000-000000000000"); !errors.As(err, &locked) || !y.server.locked() {
			t.Fatalf("Unlock with another ID: %v", err)
		}
		if err := m.Unlock(t.Context(), locked.ID); err != nil || y.server.locked() {
			t.Fatalf("Unlock: %v", err)
		}
		if err := m.Unlock(t.Context(), locked.ID); err != nil {
			t.Errorf("Unlock of a lock that is gone: %v", err)
		}
		// The registry entry was written, the machine was cut off half-way: it is dropped.
		state := y.state(m)
		if _, asked := state.Registry["c-cp-2"]; !asked {
			t.Skip("this Terraform was killed before it wrote anything") // both are right
		}
		y.do(m, terraform.Step{Kind: terraform.Drop, Machine: "c-cp-2", Have: state.Registry})
	})
}

// killTerraform kills the children of a process.
func (y *yard) killTerraform(parent int) {
	y.t.Helper()
	data, err := os.ReadFile("/proc/" + strconv.Itoa(parent) + "/task/" + strconv.Itoa(parent) + "/children")
	if err != nil {
		y.t.Skip("no /proc to find Terraform's process in:", err)
	}
	tasks, err := os.ReadDir("/proc/" + strconv.Itoa(parent) + "/task")
	if err != nil {
		y.t.Fatal(err)
	}
	children := string(data)
	for _, task := range tasks { // children belong to the thread that started them
		more, _ := os.ReadFile("/proc/" + strconv.Itoa(parent) + "/task/" + task.Name() + "/children")
		children += " " + string(more)
	}
	for _, field := range strings.Fields(children) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			y.t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			y.t.Fatal(err)
		}
	}
}
