// SPDX-License-Identifier: Apache-2.0

package terraform_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/theseus-gitops/theseus/executors/terraform"
)

// fake is a yard whose program is a shell script, which sees the command as $1 and writes what the test looks at into
// the module's folder.
func fake(t *testing.T, script string) *yard {
	t.Helper()
	t.Parallel()
	y := newYard(t, "")
	y.write("fake", "#!/bin/sh\necho \"$@\" >> calls\n"+script)
	y.binary = filepath.Join(y.dir, "fake")
	if err := os.Chmod(y.binary, 0o700); err != nil {
		t.Fatal(err)
	}
	return y
}

func (y *yard) idle(m *terraform.Module) error {
	y.t.Helper()
	_, err := m.Idle(y.t.Context(), terraform.Machines{"c-cp-1": machine()})
	return err
}

// Terraform sees what is on the list and what it is given, and nothing else of our environment (terraform-exec passes
// all of it, or nothing).
func TestEnvironment(t *testing.T) {
	y := fake(t, "env > environment\n")
	y.open(func(o *terraform.Options) {
		o.Environ = append(o.Environ, "TF_VAR_machines={}", "TF_CLI_ARGS=-target=x", "TF_LOG=trace", "TF_WORKSPACE=other", "KUBECONFIG=/x", "HTTPS_PROXY=http://proxy", "TMPDIR=/elsewhere")
		o.Env = map[string]terraform.Secret{"OS_TOKEN": "abc", "TF_HTTP_PASSWORD": "def"}
	})
	var names []string
	for line := range strings.Lines(y.text("environment")) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if name != "PWD" && name != "_" && name != "SHLVL" && name != "OLDPWD" { // the shell's own
			names = append(names, name)
		}
		if (name == "TMPDIR" || name == "TF_DATA_DIR") && !strings.HasPrefix(value, y.temp) {
			t.Errorf("%s is outside of the private folder: %s", name, value)
		}
	}
	slices.Sort(names)
	want := []string{"CHECKPOINT_DISABLE", "HOME", "HTTPS_PROXY", "OS_TOKEN", "PATH", "TF_DATA_DIR", "TF_HTTP_PASSWORD", "TF_INPUT", "TF_IN_AUTOMATION", "TMPDIR"}
	if !slices.Equal(names, want) {
		t.Errorf("Terraform sees %q, want %q", names, want)
	}
}

// What is private can be read by nobody else, and secrets are no arguments, which everybody on the machine can see.
func TestFilesArePrivate(t *testing.T) {
	y := fake(t, "find $TF_DATA_DIR/.. -printf '%y %m %f\\n' >> modes\n")
	m := y.open(func(o *terraform.Options) {
		o.BackendConfig = map[string]terraform.Secret{"password": planted("the backend")}
		o.Variables = map[string]terraform.Secret{"token": planted("a variable")}
	})
	step := addStep(terraform.Machines{"c-cp-1": machine()}, "c-cp-2")
	step.UserData = planted("user data")
	if _, err := m.Plan(t.Context(), step); err == nil {
		t.Error("an empty plan was read")
	}
	modes := y.text("modes")
	for line := range strings.Lines(modes) {
		if !strings.HasPrefix(line, "d 700 ") && !strings.HasPrefix(line, "f 600 ") {
			t.Errorf("%s", line)
		}
	}
	for _, name := range []string{"backend.json", "variables.tfvars.json", "machines.tfvars.json", "plan-1"} {
		if !strings.Contains(modes, "f 600 "+name) {
			t.Errorf("%s was not seen:\n%s", name, modes)
		}
	}
	shows(t, "the arguments", y.text("calls"))
	y.shownInFiles("after the plan failed")
}

// The arguments, to the letter: a lock file is never written, nothing is asked, nothing is targeted, and only a plan
// file is applied. Without -auto-approve an apply without it would be refused by Terraform itself.
func TestArguments(t *testing.T) {
	y := fake(t, `case "$1 $2" in
"show -json") cat plan.json;;
"state pull") cat state.json;;
esac
`)
	all := fixtures(t)
	text, _ := all["add-clean"].file("plan.json")
	y.write("plan.json", text)
	y.write("state.json", "{}")
	m := y.open(func(o *terraform.Options) {
		o.LockTimeout = 2 * time.Minute
		o.VarFiles = []string{"site.tfvars"}
		o.Variables = map[string]terraform.Secret{"token": "x"}
	})
	step, _ := all["add-clean"].step(t)
	if _, err := m.Apply(t.Context(), y.plan(m, step)); err == nil {
		t.Error("an unreadable state was read")
	}
	got := strings.ReplaceAll(strings.ReplaceAll(y.text("calls"), y.dir, "DIR"), y.temp, "TEMP")
	private := strings.Split(strings.SplitAfter(got, "TEMP/")[1], "/")[0]
	want := `init -json -input=false -lockfile=readonly -reconfigure
plan -json -input=false -out=TEMP/P/plan-1 -lock-timeout=2m0s -var-file=DIR/site.tfvars -var-file=TEMP/P/variables.tfvars.json -var-file=TEMP/P/machines.tfvars.json
show -json TEMP/P/plan-1
version
apply -json -input=false -lock-timeout=2m0s TEMP/P/plan-1
state pull
`
	if got = strings.ReplaceAll(got, private, "P"); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// Lines of any length are read (gruntwork-io/terratest#493), and other text between them is passed over.
func TestLongLines(t *testing.T) {
	y := fake(t, `[ "$1" = plan ] || exit 0
echo "There are some problems with the CLI configuration:"
printf '{"type":"log","@message":"%s"}\n' "$(head -c 3000000 /dev/zero | tr '\0' x)"
printf '{"type":"diagnostic","diagnostic":{"severity":"warning","summary":"old"}}\n'
printf '{"type":"diagnostic","diagnostic":{"severity":"error","summary":"No quota","address":"vm.x","detail":"%s"}}\n' "$(head -c 3000000 /dev/zero | tr '\0' y)"
exit 1
`)
	err := y.idle(y.open())
	wants(t, err, "plan: No quota (vm.x): yyyy")
	if len(err.Error()) > 1000 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
}

// A program that does not know -json, or says nothing, is told of as it is.
func TestOtherFailures(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ script, want string }{
		"no JSON":     {"echo 'flag provided but not defined: -json' >&2; exit 1\n", "init: flag provided but not defined: -json"},
		"silent":      {"exit 3\n", "init: it failed and did not say why; run it by hand in the module's folder"},
		"killed":      {"kill -9 $$\n", "init: it was ended by a signal: signal: killed"},
		"for people":  {"printf '╷\\n│ Error: No route\\n│ \\n│ to the backend\\n╵\\n' >&2; exit 1\n", "init: No route: to the backend"},
		"two reasons": {`for x in a b c; do echo '{"type":"diagnostic","diagnostic":{"severity":"error","summary":"'$x'"}}'; done; exit 1` + "\n", "init: a; and 2 more errors"},
	} {
		t.Run(name, func(t *testing.T) {
			y := fake(t, c.script)
			_, err := terraform.Open(t.Context(), y.options())
			wants(t, err, "fake "+c.want)
			if left := y.leftOver(); len(left) > 0 {
				t.Errorf("left over: %q", left)
			}
		})
	}
}

// An interrupted program gets one interrupt and its time; only then it is killed.
func TestStopTimeout(t *testing.T) {
	y := fake(t, `[ "$1" = plan ] || exit 0
trap 'echo interrupted >> signals' INT
touch begun
while :; do sleep 0.1; done
`)
	m := y.open(func(o *terraform.Options) { o.StopTimeout = time.Second })
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for !y.has("begun") {
			time.Sleep(10 * time.Millisecond)
		}
		cancel()
	}()
	begin := time.Now()
	_, err := m.Idle(ctx, terraform.Machines{"c-cp-1": machine()})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(begin); took < time.Second {
		t.Errorf("killed after %s", took)
	}
	if got := y.text("signals"); got != "interrupted\n" {
		t.Errorf("signals: %q", got)
	}
}

// Which backends lock, by what init writes down of them.
func TestLockingBackends(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		`{"type": "local", "config": {}}`:                                                          "",
		`{"type": "gcs", "config": {"bucket": "b"}}`:                                               "",
		`{"type": "kubernetes", "config": {}}`:                                                     "",
		`{"type": "pg", "config": {}}`:                                                             "",
		`{"type": "azurerm", "config": {}}`:                                                        "",
		`{"type": "cloud", "config": {}}`:                                                          "",
		`{"type": "consul", "config": {"lock": null}}`:                                             "",
		`{"type": "consul", "config": {"lock": false}}`:                                            "set lock = true",
		`{"type": "s3", "config": {"bucket": "b", "use_lockfile": null, "dynamodb_table": null}}`:  "set use_lockfile = true",
		`{"type": "s3", "config": {"bucket": "b", "use_lockfile": true}}`:                          "",
		`{"type": "s3", "config": {"bucket": "b", "use_lockfile": false, "dynamodb_table": "t"}}`:  "",
		`{"type": "oss", "config": {"tablestore_table": ""}}`:                                      "set tablestore_endpoint and tablestore_table",
		`{"type": "oss", "config": {"tablestore_table": "t", "tablestore_endpoint": "https://x"}}`: "",
		`{"type": "http", "config": {"address": "https://x", "lock_address": null}}`:               "set lock_address",
		`{"type": "http", "config": {"address": "https://x", "lock_address": "https://x"}}`:        "",
		`{"type": "inmem", "config": {}}`:                                                          "use a backend that locks",
	} {
		t.Run(config, func(t *testing.T) {
			y := fake(t, "cp backend.json $TF_DATA_DIR/terraform.tfstate\n")
			y.write("backend.json", `{"version": 3, "backend": `+config+`}`)
			m, err := terraform.Open(t.Context(), y.options())
			if want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if err := m.Close(); err != nil {
					t.Error(err)
				}
				return
			}
			wants(t, y.asUnfit(err), want)
		})
	}
}

// A plan that ended with an error, or that is no plan, is not used; the error does not quote it.
func TestUnusablePlans(t *testing.T) {
	t.Parallel()
	for name, plan := range map[string]string{
		"errored":   `{"format_version": "1.2", "errored": true}`,
		"of future": `{"format_version": "2.0", "x": "PLANTED"}`,
		"no JSON":   `PLANTED`,
	} {
		t.Run(name, func(t *testing.T) {
			y := fake(t, "[ \"$1\" != show ] || cat plan.json\n")
			y.write("plan.json", plan)
			err := y.idle(y.open())
			wants(t, err, "the saved plan")
			shows(t, "the error", err.Error())
		})
	}
}

// Modules that are open at the same time leave each other's folders alone.
func TestOpenSideBySide(t *testing.T) {
	y := fake(t, "")
	first, second := y.open(), y.open()
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	if left := y.leftOver(); !strings.Contains(strings.Join(left, " "), "data") {
		t.Errorf("the first one's folder is gone: %q", left)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if left := y.leftOver(); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
}

// What a plan does besides, and may, is told.
func TestNotices(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"idle-clean":     nil,
		"idle-output":    {"output.note: update"},
		"idle-tolerated": {`terraform_data.other: tolerated update of "input", "output"`},
		"idle-read":      {`terraform_data.other: tolerated update of "input", "output"`},
	} {
		t.Run(name, func(t *testing.T) {
			y := fake(t, "[ \"$1\" != show ] || cat plan.json\n")
			f := fixtures(t)[name]
			text, _ := f.file("plan.json")
			y.write("plan.json", string(laidOver(t, text, `{"resource_drift": [{"address": "terraform_data.net", "change": {"actions": ["update"], "before": {"a": 1}, "after": {"a": 2}}}]}`)))
			step, tolerate := f.step(t)
			m := y.open(func(o *terraform.Options) { o.Tolerate = tolerate })
			got, err := m.Idle(t.Context(), step.Have)
			want = append(want, "terraform_data.net: update outside of Terraform")
			slices.Sort(want)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("got %q, %v; want %q", got, err, want)
			}
		})
	}
}
