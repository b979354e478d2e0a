// SPDX-License-Identifier: Apache-2.0

package terraform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/spec"
)

// Options say which root module is driven and how.
type Options struct {
	// Dir is the root module's folder; below what Export writes, when that is given.
	Dir string
	// Export writes the files that Terraform runs on into an empty folder, which is private and goes with the Module.
	Export func(ctx context.Context, folder string) error
	// Binary is terraform, tofu, or a path.
	Binary string
	// Cluster is the name that the module's output must have, so that no other cluster's state is ever changed.
	Cluster string
	// Workspace must exist; "" means default.
	Workspace string
	// BackendConfig is given to init by a file.
	BackendConfig map[string]Secret
	// VarFiles are relative to Dir. Variables go by a file after them, the map of machines goes last.
	VarFiles  []string
	Variables map[string]Secret
	// Env are provider and backend credentials; Environ is this process's environment, of which only an allow-list is passed on.
	Env     map[string]Secret
	Environ []string
	// Tolerate names perpetual updates, as in the spec.
	Tolerate []spec.Toleration
	// LockTimeout is how long to wait for the state's lock.
	LockTimeout time.Duration
	// StopTimeout is how long an interrupted Terraform may take to end before it is killed; 30 minutes by default,
	// because a provider may finish creating a machine first (hashicorp/terraform#20709).
	StopTimeout time.Duration
	// TempDir is where the private folder is made; the system's by default.
	TempDir string
}

// Module is an initialised root module. It serves one goroutine at a time. Close it.
type Module struct {
	options Options
	binary  string
	env     []string
	folder  *folder
	secrets secrets
	plans   int
	// dialect is the first word of what the program says of its version; see tofu.
	dialect string
}

// Open makes a private folder and initialises the module in it. An *UnfitError says that a person has to change
// something: a backend without locks, a workspace that does not exist, providers that the lock file does not pin.
func Open(ctx context.Context, o Options) (*Module, error) {
	m, err := prepare(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := m.init(ctx); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

func prepare(ctx context.Context, o Options) (*Module, error) {
	if o.StopTimeout <= 0 {
		o.StopTimeout = 30 * time.Minute
	}
	m := &Module{options: o}
	var err error
	if m.binary, err = exec.LookPath(o.Binary); err != nil {
		return nil, &UnfitError{Problem: fmt.Sprintf("the program %q can't be run: %v", o.Binary, errors.Unwrap(err)), Remedy: "install it, or set spec.terraform.binary"}
	}
	if m.binary, err = filepath.Abs(m.binary); err != nil {
		return nil, fmt.Errorf("the path of %s: %w", o.Binary, err)
	}
	for _, given := range []map[string]Secret{o.Variables, o.Env, o.BackendConfig} {
		for _, value := range given {
			m.secrets.add(string(value))
		}
	}
	if m.folder, err = newFolder(o.TempDir); err != nil {
		return nil, err
	}
	if err := m.source(ctx); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	if m.env, err = m.environment(); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// source finds the module's folder, or has it written.
func (m *Module) source(ctx context.Context) (err error) {
	o := &m.options
	if o.Export != nil {
		files := m.folder.file(sourceName)
		if err := o.Export(ctx, files); err != nil {
			return err
		}
		o.Dir = filepath.Join(files, o.Dir)
	}
	o.Dir, err = checkFolder(*o)
	return err
}

// checkFolder gives the module's folder as an absolute path: commands run in it, and files are named from outside.
func checkFolder(o Options) (string, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return "", fmt.Errorf("the path of %s: %w", o.Dir, err)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", &UnfitError{Problem: fmt.Sprintf("there is no folder %s", dir), Remedy: "set spec.terraform.dir to the root module's folder"}
	}
	for _, name := range o.VarFiles {
		if !filepath.IsLocal(name) {
			return "", &UnfitError{Problem: fmt.Sprintf("variable file %s lies outside of the module's folder", name), Remedy: "name files below spec.terraform.dir"}
		}
	}
	return dir, nil
}

// init chooses the backend and installs providers and modules into the private folder. -reconfigure, because no state
// is ever copied from one backend into another (hashicorp/terraform-exec#268).
func (m *Module) init(ctx context.Context) error {
	args := []string{"init", "-json", "-input=false", "-lockfile=readonly", "-reconfigure"}
	if len(m.options.BackendConfig) > 0 {
		settings, err := m.literally(ctx, revealed(m.options.BackendConfig))
		if err != nil {
			return err
		}
		file, err := m.folder.writeJSON("backend.json", settings)
		if err != nil {
			return err
		}
		defer func() { _ = os.Remove(file) }()
		args = append(args, "-backend-config="+file)
	}
	if _, err := m.run(ctx, args...); err != nil {
		return m.explainInit(err)
	}
	if err := m.checkBackend(); err != nil {
		return err
	}
	return m.selectWorkspace(ctx)
}

// State reads the state and changes nothing. It is one call that starts no provider, and takes no lock: what is
// decided on it is checked again by the plan's guard, under the lock.
func (m *Module) State(ctx context.Context) (*State, error) {
	data, err := m.run(ctx, "state", "pull")
	if err != nil {
		return nil, err
	}
	raw, err := parseRaw(data)
	if err != nil {
		return nil, err
	}
	for _, output := range raw.Outputs {
		if output.Sensitive {
			var value any
			if json.Unmarshal(output.Value, &value) == nil {
				m.secrets.addAll(value)
			}
		}
	}
	return raw.state(m.options.Cluster)
}

// Close deletes the private folder with all plans.
func (m *Module) Close() error { return m.folder.Remove() }

// String names the module. Nothing else of it is printed: it knows secrets.
func (m *Module) String() string { return "Terraform module " + m.options.Dir }

// GoString is String.
func (m *Module) GoString() string { return m.String() }

// name is the program's, for messages.
func (m *Module) name() string { return filepath.Base(m.binary) }
