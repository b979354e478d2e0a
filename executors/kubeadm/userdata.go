// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	kubeyaml "sigs.k8s.io/yaml"

	"github.com/theseus-gitops/theseus/reconcile/skew"
	"github.com/theseus-gitops/theseus/reconcile/spec"
)

// Join is what one control-plane machine is told at its first boot.
type Join struct {
	// Machine is the name of the machine, and of the Node that it will be.
	Machine string
	// Kubernetes is the version of the machine's kubeadm.
	Kubernetes skew.Version
	// Endpoint is the cluster's controlPlaneEndpoint, host:port.
	Endpoint string
	Token    Token
	// CACertHashes pin the cluster's CA; see the function of that name.
	CACertHashes []string
	// CertificateKey decrypts Secret kubeadm-certs.
	CertificateKey Secret
	// Spec is the cluster's spec.controlPlane.join; what it omits is taken from the present nodes before.
	Spec spec.Join
	// Contents are those of Spec.Files, by path.
	Contents map[string]Secret
	// IgnorePreflightErrors are kubeadm's names of checks that may fail.
	IgnorePreflightErrors []string
	// Limit is the greatest length of the user data; 0 stands for DefaultLimit.
	Limit int
}

// DefaultLimit is what every cloud takes as user data; EC2 takes no more:
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/user-data.html
const DefaultLimit = 16 << 10

const (
	configPath = "/run/theseus/join.yaml"
	scriptPath = "/run/theseus/join.sh"
)

//go:embed join.sh
var joinScript string

// UserData is cloud-init user data that makes a new machine join the control plane, once: it does nothing on a machine
// that has joined, never resets, and removes the credentials from the machine's files when it ends.
// It holds secrets; its errors don't.
func UserData(j Join) (string, error) {
	text, err := userData(j)
	if err != nil {
		return "", fmt.Errorf("user data of %s: %w", j.Machine, err)
	}
	return text, nil
}

func userData(j Join) (string, error) {
	if err := j.check(); err != nil {
		return "", err
	}
	config, err := j.configuration()
	if err != nil {
		return "", err
	}
	text := ""
	if j.Spec.UserDataTemplate != "" {
		text, err = j.fromTemplate(config)
	} else {
		text, err = j.builtIn(config)
	}
	if err != nil {
		return "", err
	}
	if len(text) > j.limit() {
		return "", j.tooLong(fmt.Sprintf("%d", len(text)))
	}
	return text, nil
}

type cloudConfig struct {
	WriteFiles []cloudFile `json:"write_files"`
	RunCmd     [][]string  `json:"runcmd"`
}

type cloudFile struct {
	Path        string `json:"path"`
	Permissions string `json:"permissions"`
	Encoding    string `json:"encoding,omitempty"`
	Content     string `json:"content"`
}

// builtIn uses what cloud-init has always had, and nothing else: write_files and runcmd.
func (j Join) builtIn(config string) (string, error) {
	out := cloudConfig{RunCmd: [][]string{{"/bin/sh", scriptPath, j.Spec.KubeadmPath}}}
	for _, f := range j.files() {
		out.WriteFiles = append(out.WriteFiles, cloudFile{
			Path: f.Path, Permissions: f.Mode, Encoding: "b64", Content: base64.StdEncoding.EncodeToString([]byte(f.Content)),
		})
	}
	out.WriteFiles = append(out.WriteFiles,
		cloudFile{Path: configPath, Permissions: "0600", Content: config},
		cloudFile{Path: scriptPath, Permissions: "0700", Content: joinScript},
	)
	text, err := kubeyaml.Marshal(out)
	if err != nil {
		return "", fmt.Errorf("print user data: %w", err)
	}
	return "#cloud-config\n" + string(text), nil
}

func (j Join) limit() int {
	if j.Limit > 0 {
		return j.Limit
	}
	return DefaultLimit
}

// tooLong names the files, greatest share first to look at: nothing else of the user data is the user's to shorten.
func (j Join) tooLong(length string) error {
	var parts []string
	for _, f := range j.files() {
		parts = append(parts, fmt.Sprintf("%s %d", f.Path, len(f.Content)))
	}
	if len(parts) == 0 {
		return fmt.Errorf("it has %s bytes, at most %d are taken; shorten controlPlane.join", length, j.limit())
	}
	return fmt.Errorf("it has %s bytes, at most %d are taken; put files into the base image and name them in controlPlane.providedByImage "+
		"instead of controlPlane.join.files (their bytes: %s)", length, j.limit(), strings.Join(parts, ", "))
}

var errToken = errors.New("the bootstrap token is not of the form [a-z0-9]{6}.[a-z0-9]{16}")
