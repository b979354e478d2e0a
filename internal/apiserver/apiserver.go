// SPDX-License-Identifier: Apache-2.0

// Package apiserver gives tests a real Kubernetes API server with its etcd, started on first use.
// It runs no controllers, no scheduler and no kubelet: tests play those parts themselves.
// Start at Server: one per test package, run from TestMain.
package apiserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// assetsVariable is envtest's own name for the folder of etcd and kube-apiserver.
const assetsVariable = "KUBEBUILDER_ASSETS"

// Server is one API server for all tests of a package. The zero value is ready:
//
//	var server apiserver.Server
//
//	func TestMain(m *testing.M) { os.Exit(server.Run(m)) }
//
// Tests that need no API server don't start one. Tests that share it must not run in parallel.
type Server struct {
	once sync.Once
	env  *envtest.Environment
	err  error
}

// Run runs a package's tests, then stops the server if one of them started it. It returns the exit code.
func (s *Server) Run(m *testing.M) int {
	code := m.Run()
	if s.env == nil {
		return code
	}
	if err := s.env.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop the test API server:", err)
		return max(code, 1)
	}
	return code
}

// Config is an administrator's access. The caller may change it.
func (s *Server) Config(tb testing.TB) *rest.Config {
	tb.Helper()
	s.start(tb)
	return rest.CopyConfig(s.env.Config)
}

// Client is an administrator's client.
func (s *Server) Client(tb testing.TB) kubernetes.Interface {
	tb.Helper()
	client, err := kubernetes.NewForConfig(s.Config(tb))
	if err != nil {
		tb.Fatal("client of the test API server:", err)
	}
	return client
}

// Kubeconfig is an administrator's kubeconfig, complete in itself.
func (s *Server) Kubeconfig(tb testing.TB) []byte {
	tb.Helper()
	s.start(tb)
	return s.env.KubeConfig
}

// UserKubeconfig is the kubeconfig of a user with exactly the rights that RBAC gives to name and groups.
func (s *Server) UserKubeconfig(tb testing.TB, name string, groups ...string) []byte {
	tb.Helper()
	s.start(tb)
	user, err := s.env.AddUser(envtest.User{Name: name, Groups: groups}, &rest.Config{QPS: -1})
	if err != nil {
		tb.Fatalf("user %s of the test API server: %v", name, err)
	}
	out, err := user.KubeConfig()
	if err != nil {
		tb.Fatalf("kubeconfig of user %s: %v", name, err)
	}
	return out
}

func (s *Server) start(tb testing.TB) {
	tb.Helper()
	s.once.Do(func() { s.env, s.err = start() })
	if s.err != nil {
		tb.Fatal(s.err)
	}
}

func start() (*envtest.Environment, error) {
	assets, err := assetsFolder()
	if err != nil {
		return nil, err
	}
	env := &envtest.Environment{
		BinaryAssetsDirectory: assets,
		// Two minutes, because tests also run beside builds that take every core.
		ControlPlaneStartTimeout: 2 * time.Minute,
		ControlPlaneStopTimeout:  time.Minute,
	}
	// As kubeadm starts it.
	env.ControlPlane.GetAPIServer().Configure().Set("enable-bootstrap-token-auth", "true")
	if _, err := env.Start(); err != nil {
		return nil, fmt.Errorf("test API server from %s: %w", assets, errors.Join(err, env.Stop()))
	}
	return env, nil
}

// assetsFolder is where etcd and kube-apiserver are. A test that can't find them fails rather than
// skips: a skipped test looks like a passed one.
func assetsFolder() (string, error) {
	folder := os.Getenv(assetsVariable)
	if folder == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("test API server: no cache folder: %w; set %s", err, assetsVariable)
		}
		folder = filepath.Join(cache, "theseus-lab", "envtest")
	}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			return "", fmt.Errorf("test API server: %w; run \"make parts\", or set %s to a folder with etcd and kube-apiserver", err, assetsVariable)
		}
	}
	return folder, nil
}
