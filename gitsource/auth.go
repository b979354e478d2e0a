// SPDX-License-Identifier: Apache-2.0

package gitsource

import (
	"bytes"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"

	"github.com/theseus-gitops/theseus/internal/scratch"
)

// Auth is a set of credentials for one repository. It prints as a word, never as its content.
// The zero value is anonymous.
type Auth struct {
	username, password string
	bearer             string
	signer             ssh.Signer
	passphrase         string // kept only to scrub it from messages
	hosts              *knownhosts.HostKeyDB
	roots              *x509.CertPool
}

// String says which kind of credentials these are.
func (a Auth) String() string {
	switch {
	case a.signer != nil:
		return "git credentials (ssh key)"
	case a.bearer != "":
		return "git credentials (bearer token)"
	case a.password != "":
		return "git credentials (basic)"
	}
	return "git credentials (none)"
}

// none tells that these are no credentials at all.
func (a Auth) none() bool { return a.signer == nil && a.bearer == "" && a.password == "" }

// GoString is String, so that %#v shows no secret either.
func (a Auth) GoString() string { return a.String() }

// AuthFromSecret makes credentials for the URL from a Secret's data, in the key names of Flux's GitRepository
// (https://fluxcd.io/flux/components/source/gitrepositories/#secret-reference): username, password, bearerToken,
// ca.crt (or caFile) for https; identity, password (its passphrase), known_hosts and optionally identity.pub for ssh.
// Errors name the key, never its value. Unknown keys are ignored.
func AuthFromSecret(url string, data map[string][]byte) (Auth, error) {
	loc, err := parseLocation(url)
	if err != nil {
		return Auth{}, err
	}
	switch loc.scheme {
	case schemeHTTP, schemeHTTPS:
		return httpAuth(data)
	case schemeSSH:
		return sshAuth(loc, data)
	case schemeLocal:
	}
	return Auth{}, nil
}

// secretLine is a one-line value without the line break that editors and echo leave at its end.
func secretLine(data map[string][]byte, key string) (string, error) {
	value := strings.TrimRight(string(data[key]), "\r\n")
	if strings.ContainsAny(value, "\r\n\x00") {
		return "", badOption("Secret key %s: more than one line", key)
	}
	return value, nil
}

func httpAuth(data map[string][]byte) (Auth, error) {
	var a Auth
	var err error
	if a.username, err = secretLine(data, "username"); err != nil {
		return Auth{}, err
	}
	if a.password, err = secretLine(data, "password"); err != nil {
		return Auth{}, err
	}
	if a.bearer, err = secretLine(data, "bearerToken"); err != nil {
		return Auth{}, err
	}
	if err := checkHTTPAuth(a, len(data["identity"]) > 0); err != nil {
		return Auth{}, err
	}
	a.roots, err = rootsFrom(data)
	return a, err
}

func checkHTTPAuth(a Auth, hasIdentity bool) error {
	basic := a.username != "" || a.password != ""
	switch {
	case a.bearer != "" && basic:
		return badOption("Secret has bearerToken and username/password; keep one of them")
	case basic && a.password == "":
		return badOption("Secret key password is missing or empty, but username is set")
	case basic && a.username == "":
		return badOption("Secret key username is missing or empty, but password is set (for a token, most hosts take any name)")
	case strings.Contains(a.username, ":"):
		return badOption("Secret key username: a colon is not possible in HTTP basic authentication")
	case hasIdentity && a.bearer == "" && !basic:
		return badOption("Secret has an SSH key (identity), but the URL is http(s); use an ssh:// URL, or username and password")
	}
	return nil
}

func rootsFrom(data map[string][]byte) (*x509.CertPool, error) {
	for _, key := range []string{"ca.crt", "caFile"} {
		pem, ok := data[key]
		if !ok || len(bytes.TrimSpace(pem)) == 0 {
			continue
		}
		roots, err := x509.SystemCertPool()
		if err != nil {
			roots = x509.NewCertPool()
		}
		if !roots.AppendCertsFromPEM(pem) {
			return nil, badOption("Secret key %s: no PEM certificate in it", key)
		}
		return roots, nil
	}
	return nil, nil // no pool means the system's own roots, as in crypto/tls
}

func sshAuth(loc location, data map[string][]byte) (Auth, error) {
	if len(bytes.TrimSpace(data["identity"])) == 0 {
		return Auth{}, badOption("Secret key identity is missing or empty; an ssh URL needs a private key")
	}
	passphrase, err := secretLine(data, "password")
	if err != nil {
		return Auth{}, err
	}
	a := Auth{passphrase: passphrase}
	if a.signer, err = parseIdentity(data["identity"], passphrase); err != nil {
		return Auth{}, err
	}
	if pub := data["identity.pub"]; len(bytes.TrimSpace(pub)) > 0 {
		key, _, _, _, err := ssh.ParseAuthorizedKey(pub)
		if err != nil {
			return Auth{}, badOption("Secret key identity.pub: not an OpenSSH public key")
		}
		if !bytes.Equal(key.Marshal(), a.signer.PublicKey().Marshal()) {
			return Auth{}, badOption("Secret key identity.pub is not the public half of identity")
		}
	}
	a.hosts, err = parseKnownHosts(loc, data["known_hosts"])
	return a, err
}

func parseIdentity(pem []byte, passphrase string) (ssh.Signer, error) {
	signer, err := ssh.ParsePrivateKey(pem)
	var missing *ssh.PassphraseMissingError
	if !errors.As(err, &missing) {
		if err != nil {
			return nil, badOption("Secret key identity: not a private key in PEM or OpenSSH form")
		}
		return signer, nil
	}
	if passphrase == "" {
		return nil, badOption("Secret key identity is encrypted; put its passphrase into key password")
	}
	if signer, err = ssh.ParsePrivateKeyWithPassphrase(pem, []byte(passphrase)); err != nil {
		return nil, badOption("Secret key identity can't be decrypted with key password")
	}
	return signer, nil
}

// parseKnownHosts reads OpenSSH's known_hosts format: hashed names, [host]:port, several keys, @cert-authority, @revoked.
// The parser takes files only, so the (public) data passes through a temporary one.
func parseKnownHosts(loc location, data []byte) (*knownhosts.HostKeyDB, error) {
	name := knownhosts.Normalize(loc.hostPort())
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, badOption("Secret key known_hosts is missing or empty; put in the host key of %s as its owner publishes it (or ssh-keyscan's output, verified)", name)
	}
	folder, err := scratch.New("", "theseus-git-")
	if err != nil {
		return nil, badOption("known_hosts needs a writable temporary directory (TMPDIR)")
	}
	defer folder.Remove() //nolint:errcheck // public data, and the next run tries again
	file := filepath.Join(folder.Path(), "known_hosts")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return nil, badOption("known_hosts can't be written to the temporary directory (TMPDIR)")
	}
	hosts, err := knownhosts.NewDB(file)
	if err != nil {
		return nil, badOption("Secret key known_hosts: not in OpenSSH's known_hosts format")
	}
	if len(hosts.HostKeyAlgorithms(loc.hostPort())) == 0 {
		return nil, badOption("Secret key known_hosts has no key for %s", name)
	}
	return hosts, nil
}
