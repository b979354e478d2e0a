// SPDX-License-Identifier: Apache-2.0

package gitsource_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"

	"github.com/theseus-gitops/theseus/gitsource"
)

// gitSSH is a small SSH server that runs git's server programs.
type gitSSH struct {
	t        *testing.T
	addr     string
	hostKeys []ssh.Signer // ed25519, then ecdsa
	config   *ssh.ServerConfig
}

type keyPair struct {
	signer ssh.Signer
	pem    string
}

func newKey(t *testing.T, passphrase string) keyPair {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var block *pem.Block
	if passphrase == "" {
		block, err = ssh.MarshalPrivateKey(private, "")
	} else {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return keyPair{signer: signer, pem: string(pem.EncodeToMemory(block))}
}

func serveSSH(t *testing.T, allowed ssh.PublicKey) *gitSSH {
	t.Helper()
	s := &gitSSH{t: t, config: &ssh.ServerConfig{
		PublicKeyCallback: func(meta ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if meta.User() == "git" && bytes.Equal(key.Marshal(), allowed.Marshal()) {
				return &ssh.Permissions{}, nil
			}
			return nil, errors.New("unknown key")
		},
	}}
	ecdsaKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	second, err := ssh.NewSignerFromKey(ecdsaKey)
	if err != nil {
		t.Fatal(err)
	}
	s.hostKeys = []ssh.Signer{newKey(t, "").signer, second}
	for _, key := range s.hostKeys {
		s.config.AddHostKey(key)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	s.addr = listener.Addr().String()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go s.serve(conn)
		}
	}()
	return s
}

func (s *gitSSH) serve(conn net.Conn) {
	defer conn.Close() //nolint:errcheck // a test server
	_, channels, requests, err := ssh.NewServerConn(conn, s.config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		channel, requests, err := offered.Accept()
		if err != nil {
			return
		}
		go s.session(channel, requests)
	}
}

func (s *gitSSH) session(channel ssh.Channel, requests <-chan *ssh.Request) {
	for req := range requests {
		if req.Type != "exec" {
			_ = req.Reply(false, nil)
			continue
		}
		_ = req.Reply(true, nil)
		// As a real server does, a shell takes the command apart: that tests our quoting.
		cmd := exec.Command("sh", "-c", string(req.Payload[4:])) // a test server
		stdin, _ := cmd.StdinPipe()
		cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
		status := uint32(0)
		if err := cmd.Start(); err == nil {
			go func() {
				_, _ = io.Copy(stdin, channel)
				_ = stdin.Close()
			}()
			_ = cmd.Wait()
			status = uint32(cmd.ProcessState.ExitCode()) // 0..255
		}
		_, _ = channel.SendRequest("exit-status", false, binary.BigEndian.AppendUint32(nil, status))
		_ = channel.Close()
	}
}

func (s *gitSSH) url(o *origin) string { return "ssh://git@" + s.addr + o.bare }

// knownHosts gives lines in OpenSSH's plain form for all host keys.
func (s *gitSSH) knownHosts() string {
	var lines []string
	for _, key := range s.hostKeys {
		lines = append(lines, knownhosts.Line([]string{s.addr}, key.PublicKey()))
	}
	return strings.Join(lines, "\n") + "\n"
}

func sshOptions(t *testing.T, o *origin, url string, data map[string]string) (gitsource.Options, error) {
	t.Helper()
	secret := map[string][]byte{}
	for key, value := range data {
		secret[key] = []byte(value)
	}
	auth, err := gitsource.AuthFromSecret(url, secret)
	options := o.options()
	options.URL, options.Auth = url, auth
	return options, err
}

func TestSSHReadsAndCommits(t *testing.T) {
	o := seeded(t, map[string]string{"fleet.yaml": "x"})
	plain, locked := newKey(t, ""), newKey(t, "open sesame")
	for name, c := range map[string]struct {
		key        keyPair
		passphrase string
		hosts      func(*gitSSH) string
	}{
		"plain lines": {plain, "", (*gitSSH).knownHosts},
		"passphrase":  {locked, "open sesame\n", (*gitSSH).knownHosts},
		"hashed": {plain, "", func(s *gitSSH) string {
			hashed := xknownhosts.HashHostname(knownhosts.Normalize(s.addr))
			return "# comment\n" + knownhosts.Line([]string{"other.example.com"}, plain.signer.PublicKey()) + "\n" +
				hashed + " " + string(ssh.MarshalAuthorizedKey(s.hostKeys[0].PublicKey()))
		}},
		// The server prefers another type than the only one we know: asking for ours must work.
		"second key type only": {plain, "", func(s *gitSSH) string {
			return knownhosts.Line([]string{s.addr}, s.hostKeys[1].PublicKey())
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveSSH(t, c.key.signer.PublicKey())
			options, err := sshOptions(t, o, s.url(o), map[string]string{
				"identity": c.key.pem, "password": c.passphrase, "known_hosts": c.hosts(s),
				"identity.pub": string(ssh.MarshalAuthorizedKey(c.key.signer.PublicKey())),
			})
			if err != nil {
				t.Fatal(err)
			}
			repo := mustOpen(t, options)
			wantSlice(t, "files", paths(headFiles(t, repo)), []string{"fleet.yaml"})
			result := mustCommit(t, repo, request(set("a", name)))
			wantEqual(t, "head", o.git("rev-parse", statusBranch), string(result.Revision))
		})
	}
	o.git("fsck", "--strict", "--no-dangling")
}

func TestSSHProtectedBranchAndMissingRepository(t *testing.T) {
	o := seeded(t, map[string]string{"fleet.yaml": "x"})
	key := newKey(t, "")
	s := serveSSH(t, key.signer.PublicKey())
	data := map[string]string{"identity": key.pem, "known_hosts": s.knownHosts()}
	options, err := sshOptions(t, o, s.url(o), data)
	if err != nil {
		t.Fatal(err)
	}
	o.hook("update", `echo "policy says no" >&2; exit 1`)
	_, err = mustOpen(t, options).Commit(t.Context(), request(set("a", "1")))
	var refused *gitsource.PushRefusedError
	if !errors.As(err, &refused) {
		t.Errorf("got %v, want *PushRefusedError", err)
	}
	wantSays(t, err, "policy says no")

	// The quote must reach the server as part of the name, not of its shell.
	options.URL += "'; echo gone; '"
	_, err = mustOpen(t, options).Head(t.Context())
	if !errors.Is(err, gitsource.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	wantSays(t, err, "without listing a repository", "fleet.git'; echo gone; '")
}

func TestSSHRefusesAnUntrustedHost(t *testing.T) {
	o := seeded(t, map[string]string{"fleet.yaml": "x"})
	key := newKey(t, "")
	s := serveSSH(t, key.signer.PublicKey())
	for name, c := range map[string]struct {
		hosts string
		says  string
	}{
		"other key of the same type": {knownhosts.Line([]string{s.addr}, newKey(t, "").signer.PublicKey()), "not the one in known_hosts"},
		"revoked":                    {"@revoked " + knownhosts.Line([]string{s.addr}, s.hostKeys[0].PublicKey()) + "\n" + s.knownHosts(), "revoked"},
	} {
		t.Run(name, func(t *testing.T) {
			options, err := sshOptions(t, o, s.url(o), map[string]string{"identity": key.pem, "known_hosts": c.hosts})
			if err != nil {
				t.Fatal(err)
			}
			_, err = mustOpen(t, options).Head(t.Context())
			if !errors.Is(err, gitsource.ErrHostKey) {
				t.Errorf("got %v, want ErrHostKey", err)
			}
			wantSays(t, err, c.says, "SHA256:", "ask the server's owner")
		})
	}
}

func TestSSHRefusesAHostWithoutACommonKeyType(t *testing.T) {
	o := seeded(t, map[string]string{"fleet.yaml": "x"})
	key := newKey(t, "")
	s := serveSSH(t, key.signer.PublicKey())
	other, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, err := ssh.NewPublicKey(other.Public())
	if err != nil {
		t.Fatal(err)
	}
	options, err := sshOptions(t, o, s.url(o), map[string]string{"identity": key.pem, "known_hosts": knownhosts.Line([]string{s.addr}, public)})
	if err != nil {
		t.Fatal(err)
	}
	_, err = mustOpen(t, options).Head(t.Context())
	if !errors.Is(err, gitsource.ErrHostKey) {
		t.Errorf("got %v, want ErrHostKey", err)
	}
	wantSays(t, err, "ecdsa-sha2-nistp384")
}

func TestSSHRefusedKey(t *testing.T) {
	o := seeded(t, map[string]string{"fleet.yaml": "x"})
	s := serveSSH(t, newKey(t, "").signer.PublicKey())
	options, err := sshOptions(t, o, s.url(o), map[string]string{"identity": newKey(t, "").pem, "known_hosts": s.knownHosts()})
	if err != nil {
		t.Fatal(err)
	}
	_, err = mustOpen(t, options).Head(t.Context())
	if !errors.Is(err, gitsource.ErrAuth) {
		t.Errorf("got %v, want ErrAuth", err)
	}
	wantSays(t, err, "accepted no key of ours for user git", "read access")
}

// A server that accepts the connection and then says nothing must not hold us beyond the time-out.
func TestSSHServerThatNeverAnswers(t *testing.T) {
	o := seeded(t, map[string]string{"fleet.yaml": "x"})
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // a test server
	key := newKey(t, "")
	addr := listener.Addr().String()
	options, err := sshOptions(t, o, "ssh://git@"+addr+"/x", map[string]string{
		"identity": key.pem, "known_hosts": knownhosts.Line([]string{addr}, key.signer.PublicKey()),
	})
	if err != nil {
		t.Fatal(err)
	}
	options.Timeout = 100 * time.Millisecond
	_, err = mustOpen(t, options).Head(t.Context())
	wantSays(t, err, "no complete answer within 100ms")
}

func TestSSHSecretErrorsNameTheKey(t *testing.T) {
	key, locked, other := newKey(t, ""), newKey(t, "right"), newKey(t, "")
	hosts := knownhosts.Line([]string{"git.example.com"}, key.signer.PublicKey())
	const url = "git@git.example.com:fleet.git"
	for name, c := range map[string]struct {
		url  string
		data map[string]string
		says string
	}{
		"no identity":      {url, map[string]string{"known_hosts": hosts}, "key identity is missing"},
		"no known_hosts":   {url, map[string]string{"identity": key.pem}, "key known_hosts is missing"},
		"blank hosts":      {url, map[string]string{"identity": key.pem, "known_hosts": " \n"}, "key known_hosts is missing"},
		"broken hosts":     {url, map[string]string{"identity": key.pem, "known_hosts": "git.example.com nonsense"}, "key known_hosts: not in"},
		"other host":       {"ssh://git@else.example.com/x", map[string]string{"identity": key.pem, "known_hosts": hosts}, "no key for else.example.com"},
		"other port":       {"ssh://git@git.example.com:2222/x", map[string]string{"identity": key.pem, "known_hosts": hosts}, "no key for [git.example.com]:2222"},
		"broken identity":  {url, map[string]string{"identity": "secret stuff", "known_hosts": hosts}, "key identity: not a private key"},
		"no passphrase":    {url, map[string]string{"identity": locked.pem, "known_hosts": hosts}, "into key password"},
		"wrong passphrase": {url, map[string]string{"identity": locked.pem, "password": "wrong-one", "known_hosts": hosts}, "can't be decrypted with key password"},
		"other public key": {url, map[string]string{"identity": key.pem, "known_hosts": hosts,
			"identity.pub": string(ssh.MarshalAuthorizedKey(other.signer.PublicKey()))}, "key identity.pub is not"},
	} {
		t.Run(name, func(t *testing.T) {
			data := map[string][]byte{}
			for k, v := range c.data {
				data[k] = []byte(v)
			}
			_, err := gitsource.AuthFromSecret(c.url, data)
			if !errors.Is(err, gitsource.ErrConfig) {
				t.Errorf("got %v, want ErrConfig", err)
			}
			wantSays(t, err, c.says)
			wantNoSecrets(t, err, "secret stuff", "wrong-one")
		})
	}
	_, err := gitsource.Open(gitsource.Options{URL: url})
	wantSays(t, err, "identity and known_hosts")
	if strings.Contains(fmt.Sprint(err), "git@") {
		t.Errorf("user name in %v", err)
	}
}
