// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	writerNamespace = "writer"
	writesPerSecond = 20
)

// writer creates one object after another through the endpoint, 20 a second, as two kinds of clients do: one that keeps its
// connection, as controllers do, and one that makes a new one for each request, as kubectl does.
type writer struct {
	clients []kubernetes.Interface
	cancel  context.CancelFunc
	done    sync.WaitGroup

	acknowledged []string
	failed       []string
	last         time.Time
	longest      time.Duration
	longestAt    time.Time
}

func write(t *testing.T, kubeconfig string) *writer {
	t.Helper()
	w := &writer{last: time.Now()}
	for _, keep := range []bool{true, false} {
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		config.QPS = -1
		if !keep {
			config.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
				return roundTripper(func(r *http.Request) (*http.Response, error) {
					r = r.Clone(r.Context())
					r.Close = true
					return next.RoundTrip(r)
				})
			}
			config.NextProtos = []string{"http/1.1"}
		}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		w.clients = append(w.clients, client)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: writerNamespace}}
	if _, err := w.clients[0].CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	prefix := time.Now().Format("150405")
	w.done.Go(func() {
		n := 0
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			w.one(ctx, fmt.Sprintf("%s-%06d", prefix, n), w.clients[n%len(w.clients)])
			n++
		}, time.Second/writesPerSecond)
	})
	return w
}

func (w *writer) one(ctx context.Context, name string, client kubernetes.Interface) {
	const patience = 5 * time.Second
	request, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := client.CoreV1().ConfigMaps(writerNamespace).Create(request, object, metav1.CreateOptions{})
	now := time.Now()
	switch {
	case ctx.Err() != nil:
	case err != nil:
		w.failed = append(w.failed, now.Format("15:04:05.000 ")+err.Error())
	default:
		w.acknowledged = append(w.acknowledged, name)
		if gap := now.Sub(w.last); gap > w.longest {
			w.longest, w.longestAt = gap, now
		}
		w.last = now
	}
}

// stop ends the writes and requires that everything acknowledged is there. It returns how many failed.
func (w *writer) stop(t *testing.T) int {
	t.Helper()
	w.cancel()
	w.done.Wait()
	list, err := w.clients[0].CoreV1().ConfigMaps(writerNamespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, m := range list.Items {
		have[m.Name] = true
	}
	lost := slices.DeleteFunc(slices.Clone(w.acknowledged), func(name string) bool { return have[name] })
	t.Logf("writes through the endpoint: %d acknowledged, %d lost, %d failed, longest gap %s (until %s)\n%s",
		len(w.acknowledged), len(lost), len(w.failed), w.longest.Round(time.Millisecond), w.longestAt.Format("15:04:05.000"), strings.Join(w.failed, "\n"))
	if len(lost) > 0 {
		t.Errorf("acknowledged writes were lost: %v", lost)
	}
	if len(w.acknowledged) == 0 {
		t.Error("nothing was written")
	}
	err = w.clients[0].CoreV1().ConfigMaps(writerNamespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return len(w.failed)
}
