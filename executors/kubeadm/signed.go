// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

const (
	infoNamespace = "kube-public"
	infoName      = "cluster-info"
	infoKey       = "kubeconfig"
	infoSignature = "jws-kubeconfig-"
	infoWhere     = "configmaps/" + infoName + " in " + infoNamespace
)

// AwaitSigned waits until the controller-manager has signed cluster-info with a token. It does so some time after the
// token was made, and before that a machine with the token can't tell this cluster from another.
func AwaitSigned(ctx context.Context, client kubernetes.Interface, id string, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var last error
	pause := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 1.5, Steps: 20, Cap: 2 * time.Second}
	err := pause.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		var signed bool
		signed, last = isSigned(ctx, client, id)
		return signed, lasting(last)
	})
	switch {
	case err == nil:
		return nil
	case !wait.Interrupted(err):
		return err
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("%s: waiting for the signature of token %s: %w", infoWhere, id, ctx.Err())
	}
	return errors.Join(fmt.Errorf("%s: no signature %s%s after %s; the controller-manager makes it when it runs with --controllers=*,bootstrapsigner,tokencleaner, "+
		"as kubeadm starts it, and the token has not expired", infoWhere, infoSignature, id, within), notTimeout(last))
}

func isSigned(ctx context.Context, client kubernetes.Interface, id string) (bool, error) {
	info, err := client.CoreV1().ConfigMaps(infoNamespace).Get(ctx, infoName, metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	if info.Data[infoKey] == "" {
		return false, errNoInfo
	}
	return info.Data[infoSignature+id] != "", nil
}

var errNoInfo = fmt.Errorf("%s has no key %s; restore it with `kubeadm init phase bootstrap-token`", infoWhere, infoKey)

// lasting is an error that waiting does not mend; an API server that does not answer for a moment is none.
func lasting(err error) error {
	switch {
	case errors.Is(err, errNoInfo):
		return err
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s does not exist, so no machine can join with a token; restore it with `kubeadm init phase bootstrap-token`: %w", infoWhere, err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s: the API server refused to get it; if the account lacks the right, grant verb get on configmaps: %w", infoWhere, err)
	}
	return nil
}

// notTimeout leaves out the error of the call that our own deadline cut off.
func notTimeout(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}
