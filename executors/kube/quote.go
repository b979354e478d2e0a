// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/logbook"
)

const (
	// quotedPods is how many crashed pods are asked for their last words: they run one image with one Corefile.
	quotedPods = 2
	// quoteTimeout bounds what the quotes may cost a look at the cluster.
	quoteTimeout = 3 * time.Second
)

// quote fills in the last words of pods whose CoreDNS crashed and does not run now. It is best effort: without the right to
// read logs, or without a log, there are none.
func (c *Client) quote(ctx context.Context, pods []live.DNSPod) {
	ctx, cancel := context.WithTimeout(ctx, quoteTimeout)
	defer cancel()
	var all sync.WaitGroup
	asked := 0
	for i := range pods {
		p := &pods[i]
		if p.Restarts == 0 || p.Waiting == "" || p.Deleting || asked == quotedPods {
			continue
		}
		asked++
		all.Go(func() { p.LastWords = c.lastWords(ctx, p.Name) })
	}
	all.Wait()
}

func (c *Client) lastWords(ctx context.Context, pod string) string {
	lines, size := int64(5), int64(32<<10) // the size is a guard: it cuts off the end, not the beginning
	text, err := c.kube.CoreV1().Pods(logbook.Namespace).GetLogs(pod, &corev1.PodLogOptions{
		Container: coreDNSName, Previous: true, TailLines: &lines, LimitBytes: &size,
	}).DoRaw(ctx)
	// A kubelet whose runtime has dropped the log says so in its place.
	if err != nil || strings.HasPrefix(string(text), "unable to retrieve container logs") {
		return ""
	}
	return live.LastWords(string(text))
}
