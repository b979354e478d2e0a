// SPDX-License-Identifier: Apache-2.0

package kubeadm_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/theseus-gitops/theseus/executors/kubeadm"
)

func newToken(t *testing.T, client kubernetes.Interface, machine string) kubeadm.Token {
	t.Helper()
	token, err := kubeadm.CreateToken(t.Context(), client, machine, time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func secretOf(t *testing.T, client kubernetes.Interface, id string) *corev1.Secret {
	t.Helper()
	secret, err := client.CoreV1().Secrets("kube-system").Get(t.Context(), "bootstrap-token-"+id, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// clientAs is the client of a person without rights.
func clientAs(t *testing.T, name string) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(server.UserKubeconfig(t, name))
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// whoAmI asks the API server whom it takes the bearer of a token for.
func whoAmI(t *testing.T, token kubeadm.Token) (authenticationv1.UserInfo, error) {
	t.Helper()
	config := rest.AnonymousClientConfig(server.Config(t))
	config.BearerToken = token.ID + "." + string(token.Secret)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	return review.Status.UserInfo, nil
}

func TestATokenLetsAMachineIn(t *testing.T) {
	server.Reset(t)
	client := server.Client(t)
	token := newToken(t, client, "seed-cp-4")
	user, err := whoAmI(t, token)
	if err != nil || user.Username != "system:bootstrap:"+token.ID || !slices.Contains(user.Groups, "system:bootstrappers:kubeadm:default-node-token") {
		t.Errorf("the API server takes its bearer for %v, %v", user, err)
	}
	secret := secretOf(t, client, token.ID)
	for key, want := range map[string]string{
		"usage-bootstrap-signing": "true", "usage-bootstrap-authentication": "true", "description": "Theseus: join of seed-cp-4", "token-id": token.ID,
	} {
		if got := string(secret.Data[key]); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if secret.Type != "bootstrap.kubernetes.io/token" || secret.Labels["theseus.dev/machine"] != "seed-cp-4" {
		t.Errorf("type %s, labels %v", secret.Type, secret.Labels)
	}
	if other := newToken(t, client, "seed-cp-5"); other.ID == token.ID || other.Secret == token.Secret {
		t.Error("two machines got one token")
	}
	j := join()
	j.Token = token
	if _, err := kubeadm.UserData(j); err != nil {
		t.Errorf("user data refuses it: %v", err)
	}

	unused := newToken(t, client, "seed-cp-6") // an API server remembers for seconds whom it let in
	for range 2 {
		if err := kubeadm.DeleteToken(t.Context(), client, unused.ID); err != nil {
			t.Fatal(err)
		}
	}
	if user, err := whoAmI(t, unused); !apierrors.IsUnauthorized(err) {
		t.Errorf("deleted, its bearer is %v, %v", user, err)
	}
}

func TestProlongToken(t *testing.T) {
	server.Reset(t)
	client := server.Client(t)
	token, err := kubeadm.CreateToken(t.Context(), client, "seed-cp-4", time.Now().Add(-time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if user, err := whoAmI(t, token); !apierrors.IsUnauthorized(err) {
		t.Fatalf("expired, its bearer is %v, %v", user, err)
	}
	later := time.Now().Add(time.Hour)
	if err := kubeadm.ProlongToken(t.Context(), client, token.ID, later); err != nil {
		t.Fatal(err)
	}
	if _, err := whoAmI(t, token); err != nil {
		t.Errorf("prolonged: %v", err)
	}
	before := secretOf(t, client, token.ID)
	if got := string(before.Data["expiration"]); got != later.UTC().Format(time.RFC3339) {
		t.Errorf("expiration %s, want %s", got, later)
	}
	for _, same := range []time.Time{later, later.Add(-time.Minute)} {
		if err := kubeadm.ProlongToken(t.Context(), client, token.ID, same); err != nil {
			t.Fatal(err)
		}
	}
	if after := secretOf(t, client, token.ID); after.ResourceVersion != before.ResourceVersion {
		t.Error("a token that lives as long was written, or its life was shortened")
	}
	if err := kubeadm.DeleteToken(t.Context(), client, token.ID); err != nil {
		t.Fatal(err)
	}
	if err := kubeadm.ProlongToken(t.Context(), client, token.ID, later); !errors.Is(err, kubeadm.ErrTokenGone) {
		t.Errorf("error is %v, want ErrTokenGone", err)
	}
}

// Tokens of people, and the one that kubeadm makes for the life of kubeadm-certs, are not ours to touch.
func TestOnlyOurTokensAreTouched(t *testing.T) {
	server.Reset(t)
	client := server.Client(t)
	put := func(id, description string, labels map[string]string, kind corev1.SecretType) {
		t.Helper()
		_, err := client.CoreV1().Secrets("kube-system").Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + id, Labels: labels},
			Type:       kind, StringData: map[string]string{"description": description},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	put("people", "for my laptop", nil, corev1.SecretTypeBootstrapToken)
	put("kbadm1", "Proxy for managing TTL for the kubeadm-certs secret", nil, corev1.SecretTypeBootstrapToken)
	put("opaque", "Theseus: join of x", nil, corev1.SecretTypeOpaque)
	put("ours01", "Theseus: join of seed-cp-2", nil, corev1.SecretTypeBootstrapToken)
	put("ours02", "", map[string]string{"theseus.dev/machine": "seed-cp-3"}, corev1.SecretTypeBootstrapToken)
	awaited := newToken(t, client, "seed-cp-4")

	for _, id := range []string{"people", "opaque"} {
		for verb, err := range map[string]error{
			"delete":  kubeadm.DeleteToken(t.Context(), client, id),
			"prolong": kubeadm.ProlongToken(t.Context(), client, id, time.Now().Add(time.Hour)),
		} {
			if err == nil || !strings.Contains(err.Error(), "no bootstrap token that Theseus made") {
				t.Errorf("%s %s: error %v", verb, id, err)
			}
		}
	}
	machines, err := kubeadm.DeleteLeftTokens(t.Context(), client, awaited.ID)
	slices.Sort(machines)
	if err != nil || !slices.Equal(machines, []string{"seed-cp-2", "seed-cp-3"}) {
		t.Errorf("deleted those of %v, %v", machines, err)
	}
	for _, id := range []string{"people", "kbadm1", "opaque", awaited.ID} {
		secretOf(t, client, id)
	}
	if machines, err = kubeadm.DeleteLeftTokens(t.Context(), client); err != nil || !slices.Equal(machines, []string{"seed-cp-4"}) {
		t.Errorf("with none to keep: deleted those of %v, %v", machines, err)
	}
}

func TestTokenErrorsSayWhatToDo(t *testing.T) {
	server.Reset(t)
	token := newToken(t, server.Client(t), "seed-cp-4")
	nobody := clientAs(t, "nobody")
	_, create := kubeadm.CreateToken(t.Context(), nobody, "seed-cp-5", time.Now())
	_, list := kubeadm.DeleteLeftTokens(t.Context(), nobody)
	for want, err := range map[string]error{
		"grant verb create on secrets": create,
		"grant verb list on secrets":   list,
		"grant verb get on secrets":    kubeadm.DeleteToken(t.Context(), nobody, token.ID),
		"grant verb get on configmaps": kubeadm.AwaitSigned(t.Context(), nobody, token.ID, time.Second),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		} else if strings.Contains(err.Error(), string(token.Secret)) {
			t.Errorf("the token is in %v", err)
		}
	}
}

// clusterInfo makes cluster-info with its data, and returns what signs it as the controller-manager would.
func clusterInfo(t *testing.T, client kubernetes.Interface, data map[string]string) (sign func(id string)) {
	t.Helper()
	info, err := client.CoreV1().ConfigMaps("kube-public").Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "cluster-info"}, Data: data,
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.CoreV1().ConfigMaps("kube-public").Delete(context.WithoutCancel(t.Context()), "cluster-info", metav1.DeleteOptions{})
	})
	return func(id string) {
		info.Data["jws-kubeconfig-"+id] = "eyJ..sig"
		if _, err := client.CoreV1().ConfigMaps("kube-public").Update(t.Context(), info, metav1.UpdateOptions{}); err != nil {
			t.Error(err)
		}
	}
}

// A machine that boots before the signature is there does not trust the cluster.
func TestAwaitSigned(t *testing.T) {
	server.Reset(t)
	client := server.Client(t)
	sign := clusterInfo(t, client, map[string]string{"kubeconfig": "x", "jws-kubeconfig-zzzzzz": "another's"})
	done := make(chan struct{})
	go func() {
		defer close(done)
		time.Sleep(300 * time.Millisecond)
		sign("abcdef")
	}()
	began := time.Now()
	if err := kubeadm.AwaitSigned(t.Context(), client, "abcdef", 20*time.Second); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took < 300*time.Millisecond || took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
	<-done
}

func TestAwaitSignedEnds(t *testing.T) {
	server.Reset(t)
	client := server.Client(t)
	t.Run("no cluster-info", func(t *testing.T) {
		err := kubeadm.AwaitSigned(t.Context(), client, "abcdef", time.Minute)
		if err == nil || !strings.Contains(err.Error(), "does not exist, so no machine can join") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("cluster-info without kubeconfig", func(t *testing.T) {
		clusterInfo(t, client, nil)
		if err := kubeadm.AwaitSigned(t.Context(), client, "abcdef", time.Minute); err == nil || !strings.Contains(err.Error(), "has no key kubeconfig") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("never signed", func(t *testing.T) {
		clusterInfo(t, client, map[string]string{"kubeconfig": "x"})
		err := kubeadm.AwaitSigned(t.Context(), client, "abcdef", 300*time.Millisecond)
		if err == nil || !strings.Contains(err.Error(), "--controllers=*,bootstrapsigner,tokencleaner") || strings.Contains(err.Error(), "deadline") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("called off", func(t *testing.T) {
		clusterInfo(t, client, map[string]string{"kubeconfig": "x"})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := kubeadm.AwaitSigned(ctx, client, "abcdef", time.Minute); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("no answer", func(t *testing.T) {
		config := server.Config(t)
		config.Host = "https://127.0.0.1:1"
		gone, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		if err := kubeadm.AwaitSigned(t.Context(), gone, "abcdef", 300*time.Millisecond); err == nil || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("error %v", err)
		}
	})
}
