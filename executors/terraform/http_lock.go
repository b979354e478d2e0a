// SPDX-License-Identifier: Apache-2.0

package terraform

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
)

// httpVariable is the environment variable of a setting of the http backend
// (https://developer.hashicorp.com/terraform/language/backend/http).
func httpVariable(setting string) string { return "TF_HTTP_" + strings.ToUpper(setting) }

// askLimit limits one question to a state server.
const askLimit = 10 * time.Second

// askHolder fills in who holds the lock of the http backend, whose server tells it to Terraform, which keeps it for
// itself: the server is asked for the lock once more and refuses with the holder's own words (423, or 409 of some).
// When that can't be found out, the holder stays unknown; a lock that was free meanwhile is given back at once.
func (m *Module) askHolder(ctx context.Context, held *LockedError) {
	b, err := m.backend()
	if err != nil || b.Type != "http" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askLimit)
	defer cancel()
	server := httpLock{setting: func(name string) string {
		if text, ok := b.Config[name].(string); ok && text != "" {
			return text
		}
		return m.variable(httpVariable(name))
	}, insecure: b.Config["skip_cert_verification"] == true || m.variable(httpVariable("skip_cert_verification")) == "true"}
	if info, ok := server.holder(ctx, m.user()); ok && info.ID == held.ID {
		held.Who, held.Operation, held.Created = info.Who, info.Operation, info.Created
	}
}

// lockInfo is what a holder says of itself.
type lockInfo struct {
	ID, Who, Operation string
	Created            time.Time
}

// askOperation is what the question for a lock's holder says of itself.
const askOperation = "theseus asks who holds the lock"

// holder asks. The question says whose it is, because it becomes a lock when there is none any more, for a moment.
func (s httpLock) holder(ctx context.Context, user string) (lockInfo, bool) {
	host, _ := os.Hostname()
	info := lockInfo{ID: uuid.NewString(), Who: user + "@" + host, Operation: askOperation, Created: time.Now().UTC()}
	question, err := json.Marshal(info)
	if err != nil {
		return info, false
	}
	code, answer, err := s.send(ctx, cmp.Or(s.setting("lock_method"), "LOCK"), s.setting("lock_address"), question)
	switch {
	case err != nil:
		return info, false
	case code == http.StatusOK:
		_, _, _ = s.send(ctx, cmp.Or(s.setting("unlock_method"), "UNLOCK"), s.setting("unlock_address"), question)
		return info, false
	case code != http.StatusLocked && code != http.StatusConflict:
		return info, false
	}
	var told lockInfo
	err = json.Unmarshal(answer, &told)
	return told, err == nil
}

// httpLock is the lock of an http backend.
type httpLock struct {
	setting  func(name string) string
	insecure bool
}

func (s httpLock) send(ctx context.Context, method, address string, body []byte) (int, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if user := s.setting("username"); user != "" {
		request.SetBasicAuth(user, s.setting("password"))
	}
	config, err := s.tls()
	if err != nil {
		return 0, nil, err
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	return response.StatusCode, answer, err
}

func (s httpLock) tls() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: s.insecure} //nolint:gosec // as the backend is set up
	if authority := s.setting("client_ca_certificate_pem"); authority != "" {
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM([]byte(authority))
	}
	if certificate := s.setting("client_certificate_pem"); certificate != "" {
		pair, err := tls.X509KeyPair([]byte(certificate), []byte(s.setting("client_private_key_pem")))
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
