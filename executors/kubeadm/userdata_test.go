// SPDX-License-Identifier: Apache-2.0

package kubeadm_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	kubeyaml "sigs.k8s.io/yaml"

	"github.com/theseus-gitops/theseus/executors/kubeadm"
	"github.com/theseus-gitops/theseus/reconcile/skew"
	"github.com/theseus-gitops/theseus/reconcile/spec"
)

var update = flag.Bool("update", false, "rewrite golden files")

const (
	plantedToken = "s3cr3tt0kenplant" // the form of a token's secret
	plantedKey   = "5ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7"
	plantedFile  = "rules: planted-file-content\n"
)

func join() kubeadm.Join {
	return kubeadm.Join{
		Machine:        "seed-eu-1-cp-4",
		Kubernetes:     skew.Version{Major: 1, Minor: 37, Patch: 2},
		Endpoint:       "10.0.0.1:6443",
		Token:          kubeadm.Token{ID: "abcdef", Secret: plantedToken},
		CACertHashes:   []string{"sha256:" + strings.Repeat("0f", 32)},
		CertificateKey: plantedKey,
		Spec:           spec.Join{BindPort: 6443, KubeadmPath: "/usr/bin/kubeadm"},
	}
}

func full() kubeadm.Join {
	j := join()
	j.Spec.NodeRegistration = spec.NodeRegistration{
		CRISocket:        "unix:///run/containerd/containerd.sock",
		Taints:           []spec.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: "NoSchedule"}, {Key: "a/b", Value: "c", Effect: "NoExecute"}},
		KubeletExtraArgs: []spec.Argument{{Name: "node-ip", Value: "::1"}, {Name: "v", Value: "2"}},
	}
	j.Spec.BindPort = 8443
	j.Spec.KubeadmPath = "/opt/it's/kubeadm"
	j.Spec.Files = []spec.JoinFile{{Path: "/etc/kubernetes/audit.yaml", Mode: "0600"}, {Path: "/etc/empty", Mode: "0644"}}
	j.Contents = map[string]kubeadm.Secret{"/etc/kubernetes/audit.yaml": plantedFile, "/etc/empty": ""}
	j.IgnorePreflightErrors = []string{"SystemVerification"}
	return j
}

// The goldens are also read by the lab's own reader of user data (test/lab/service).
func TestUserDataGolden(t *testing.T) {
	untainted := join()
	untainted.Spec.NodeRegistration.Taints = []spec.Taint{}
	old := full()
	old.Kubernetes = skew.Version{Major: 1, Minor: 30, Patch: 14}
	for name, j := range map[string]kubeadm.Join{"plain": join(), "full": full(), "untainted": untainted, "v1beta3": old} {
		t.Run(name, func(t *testing.T) {
			got, err := kubeadm.UserData(j)
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", "userdata", name+".yaml")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil || got != string(want) {
				t.Errorf("%v\ngot:\n%s\nwant:\n%s", err, got, want)
			}
			again, err := kubeadm.UserData(j)
			if err != nil || again != got {
				t.Errorf("two answers to one question: %v\n%s", err, again)
			}
		})
	}
}

type writtenFile struct{ Path, Permissions, Encoding, Content string }

func readCloudConfig(t *testing.T, text string) (files map[string]writtenFile, commands [][]string) {
	t.Helper()
	var doc struct {
		WriteFiles []writtenFile `json:"write_files"`
		RunCmd     [][]string    `json:"runcmd"`
	}
	if err := kubeyaml.UnmarshalStrict([]byte(text), &doc); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	files = map[string]writtenFile{}
	for _, f := range doc.WriteFiles {
		files[f.Path] = f
	}
	return files, doc.RunCmd
}

func joinConfig(t *testing.T, j kubeadm.Join) string {
	t.Helper()
	text, err := kubeadm.UserData(j)
	if err != nil {
		t.Fatal(err)
	}
	files, _ := readCloudConfig(t, text)
	config := files["/run/theseus/join.yaml"]
	if config.Permissions != "0600" {
		t.Errorf("the credentials have mode %s", config.Permissions)
	}
	return config.Content
}

// kubernetes/kubernetes#136016: kubeadm 1.37 reads no v1beta3, kubeadm 1.30 no v1beta4.
func TestJoinConfigurationIsOfAVersionThatTheTargetReads(t *testing.T) {
	for minor, want := range map[uint64]string{22: "v1beta3", 30: "v1beta3", 31: "v1beta4", 36: "v1beta4", 37: "v1beta4", 38: "v1beta4"} {
		j := join()
		j.Kubernetes.Minor = minor
		if got := joinConfig(t, j); !strings.Contains(got, "apiVersion: kubeadm.k8s.io/"+want+"\n") {
			t.Errorf("1.%d: want %s in\n%s", minor, want, got)
		}
	}
}

// A key with an empty list keeps a plane untainted; no key, or null, lets kubeadm taint it.
func TestAnUntaintedPlaneStaysUntainted(t *testing.T) {
	j := join()
	if got := joinConfig(t, j); strings.Contains(got, "taints") {
		t.Errorf("taints that nobody gave:\n%s", got)
	}
	j.Spec.NodeRegistration.Taints = []spec.Taint{}
	if got := joinConfig(t, j); !strings.Contains(got, "  taints: []\n") {
		t.Errorf("no empty list of taints:\n%s", got)
	}
}

// vmware-archive/cluster-api-upgrade-tool#123: a machine that ran init split the cluster.
func TestUserDataJoinsAndDoesNothingElse(t *testing.T) {
	text, err := kubeadm.UserData(full())
	if err != nil {
		t.Fatal(err)
	}
	files, commands := readCloudConfig(t, text)
	if len(commands) != 1 || len(files) != 4 {
		t.Fatalf("commands %q, files %v", commands, files)
	}
	script := files["/run/theseus/join.sh"].Content
	if !strings.Contains(script, `"$kubeadm" join --config=`) || regexp.MustCompile(`kubeadm"? +(init|reset)`).MatchString(script) {
		t.Errorf("kubeadm is called for something else than join:\n%s", script)
	}
}

func TestUserDataRefuses(t *testing.T) {
	many := make([]spec.JoinFile, 0, 2)
	many = append(many, spec.JoinFile{Path: "/etc/a", Mode: "0600"}, spec.JoinFile{Path: "/etc/a", Mode: "0600"})
	one := func(path, mode string) func(*kubeadm.Join) {
		return func(j *kubeadm.Join) {
			j.Spec.Files = []spec.JoinFile{{Path: path, Mode: mode}}
			j.Contents = map[string]kubeadm.Secret{path: plantedFile}
		}
	}
	tests := []struct {
		name   string
		change func(*kubeadm.Join)
		want   string
	}{
		{"no token", func(j *kubeadm.Join) { j.Token = kubeadm.Token{} }, "bootstrap token is not of the form"},
		{"token with a line end", func(j *kubeadm.Join) { j.Token.Secret = plantedToken + "\n" }, "bootstrap token is not of the form"},
		{"short certificate key", func(j *kubeadm.Join) { j.CertificateKey = kubeadm.Secret(plantedKey[:62]) }, "certificate key is not 32 bytes"},
		{"no CA hash", func(j *kubeadm.Join) { j.CACertHashes = nil }, "could join a cluster of someone else"},
		{"CA hash of another kind", func(j *kubeadm.Join) { j.CACertHashes = []string{"md5:00"} }, `"md5:00" is not sha256`},
		{"name in capitals", func(j *kubeadm.Join) { j.Machine = "CP-1" }, `"CP-1" is not a DNS label`},
		{"name with a command", func(j *kubeadm.Join) { j.Machine = "a;b" }, "not a DNS label"},
		{"endpoint without port", func(j *kubeadm.Join) { j.Endpoint = "api.example.com" }, "not host:port"},
		{"endpoint as URL", func(j *kubeadm.Join) { j.Endpoint = "https://api.example.com:6443" }, "not host:port"},
		{"endpoint with port 0", func(j *kubeadm.Join) { j.Endpoint = "a:0" }, "not host:port"},
		{"no bind port", func(j *kubeadm.Join) { j.Spec.BindPort = 0 }, "bindPort 0"},
		{"kubeadm not absolute", func(j *kubeadm.Join) { j.Spec.KubeadmPath = "kubeadm" }, "kubeadmPath"},
		{"kubeadm with a line end", func(j *kubeadm.Join) { j.Spec.KubeadmPath = "/a\nb" }, "kubeadmPath"},
		{"Kubernetes too old", func(j *kubeadm.Join) { j.Kubernetes.Minor = 21 }, "v1.22 and later"},
		{"argument twice in v1beta3", func(j *kubeadm.Join) {
			j.Kubernetes.Minor = 30
			j.Spec.NodeRegistration.KubeletExtraArgs = []spec.Argument{{Name: "a", Value: "1"}, {Name: "a", Value: "2"}}
		}, `"a" comes twice`},
		{"file without content", func(j *kubeadm.Join) { j.Spec.Files = many[:1] }, "its content was not read"},
		{"file twice", func(j *kubeadm.Join) {
			j.Spec.Files, j.Contents = many, map[string]kubeadm.Secret{"/etc/a": plantedFile}
		}, "/etc/a comes twice"},
		{"file with ..", one("/etc/../a", "0600"), "without . and .. parts"},
		{"mode of letters", one("/etc/a", "rw"), `mode "rw"`},
		{"a kubelet.conf, so that the join does nothing", one("/etc/kubernetes/kubelet.conf", "0600"), "marks a machine that has joined"},
		{"a manifest of kubeadm's", one("/etc/kubernetes/manifests/etcd.yaml", "0600"), "kubeadm makes it"},
		{"something in etcd's folder", one("/var/lib/etcd/x", "0600"), "must be empty"},
		{"our own folder", one("/run/theseus/join.yaml", "0600"), "its own files"},
		{"too long", func(j *kubeadm.Join) {
			one("/etc/a", "0600")(j)
			j.Contents["/etc/a"] = kubeadm.Secret(strings.Repeat("planted-file-content ", 800))
		}, "providedByImage instead of controlPlane.join.files (their bytes: /etc/a 16800)"},
		{"too long by its own", func(j *kubeadm.Join) { j.Limit = 100 }, "at most 100 are taken"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			j := join()
			tt.change(&j)
			got, err := kubeadm.UserData(j)
			if err == nil || got != "" || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %q, error %v; want an error with %q", got, err, tt.want)
			}
			noSecrets(t, err.Error())
		})
	}
}

func TestALongerLimitIsTaken(t *testing.T) {
	j := join()
	j.Spec.Files = []spec.JoinFile{{Path: "/etc/a", Mode: "0600"}}
	j.Contents = map[string]kubeadm.Secret{"/etc/a": kubeadm.Secret(strings.Repeat("x", 20_000))}
	j.Limit = 64 << 10
	if _, err := kubeadm.UserData(j); err != nil {
		t.Error(err)
	}
}

func noSecrets(t *testing.T, text string) {
	t.Helper()
	for _, planted := range []string{plantedToken, plantedKey, plantedKey[:62], "planted-file-content"} {
		if strings.Contains(text, planted) {
			t.Errorf("a secret is in:\n%s", text)
		}
	}
}

func TestAJoinIsPrintedWithoutItsSecrets(t *testing.T) {
	j := full()
	var out bytes.Buffer
	slog.New(slog.NewTextHandler(&out, nil)).Info("text", "join", j, "key", j.CertificateKey)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("json", "join", j, "key", j.CertificateKey)
	asJSON, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	out.Write(asJSON)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		fmt.Fprintf(&out, verb+"\n", j)
		fmt.Fprintf(&out, verb+"\n", &j)
	}
	noSecrets(t, out.String())
}
