// SPDX-License-Identifier: Apache-2.0

package coredns

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

// ask asks one pod one question, up to tries times, until the answer is worth enough, and returns the best
// answer it got. It fails only when ctx ends or the question can't be put.
func (e *Executor) ask(ctx context.Context, pod string, q rollout.Question, enough worth, tries int) (answer, error) {
	query, err := newQuery(q)
	if err != nil {
		return answer{}, err
	}
	var best answer
	for try := range tries {
		if try > 0 {
			e.Tell(fmt.Sprintf("pod %s is asked again for %s, it says %s", pod, q, best))
			if err := sleep(ctx, e.AskPause); err != nil {
				return answer{}, fmt.Errorf("pod %s: %s: %w", pod, q, err)
			}
		}
		got := e.try(ctx, pod, query)
		if ctx.Err() != nil {
			return answer{}, fmt.Errorf("pod %s: %s: %w", pod, q, context.Cause(ctx))
		}
		got.reached = got.reached || best.reached
		if got.worth() >= best.worth() {
			best = got
		}
		best.reached = got.reached
		if best.worth() >= enough {
			break
		}
	}
	return best, nil
}

// try is one connection, one query, one reply.
func (e *Executor) try(ctx context.Context, pod string, q query) answer {
	ctx, cancel := context.WithTimeout(ctx, e.AskTimeout)
	defer cancel()
	conn, err := e.Dial(ctx, pod, q.port)
	if err != nil {
		return answer{why: "no connection: " + e.cause(ctx, err)}
	}
	defer conn.Close() //nolint:errcheck // the reply was read, or is given up
	// Closing works for every kind of connection; a stream of a port-forward may not know deadlines.
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	code, err := q.exchange(conn)
	if err != nil {
		return answer{why: e.cause(ctx, err), reached: true}
	}
	return answer{code: code, reached: true}
}

func (e *Executor) cause(ctx context.Context, err error) string {
	if ctx.Err() != nil {
		return fmt.Sprintf("no reply within %s", e.AskTimeout)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "the connection was closed without a reply"
	}
	return brief(err.Error(), 200)
}

// query is a question in DNS's own form.
type query struct {
	id       uint16
	port     int
	question dnsmessage.Question
	packet   []byte
}

func newQuery(q rollout.Question) (query, error) {
	name, err := dnsmessage.NewName(q.Name)
	if err != nil || !strings.HasSuffix(q.Name, ".") {
		return query{}, fmt.Errorf("question %s: the name is not an absolute DNS name", q)
	}
	out := query{id: uint16(rand.Uint32()), port: q.Port, question: dnsmessage.Question{Name: name, Class: dnsmessage.ClassINET}}
	switch q.Type {
	case "A":
		out.question.Type = dnsmessage.TypeA
	case "SOA":
		out.question.Type = dnsmessage.TypeSOA
	default:
		return query{}, fmt.Errorf("question %s: type %q is neither A nor SOA", q, q.Type)
	}
	msg := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: out.id, RecursionDesired: true},
		Questions: []dnsmessage.Question{out.question},
	}
	if out.packet, err = msg.Pack(); err != nil {
		return query{}, fmt.Errorf("question %s: %w", q, err)
	}
	return out, nil
}

// exchange sends the query and reads the reply, each preceded by its length (RFC 1035, section 4.2.2).
func (q query) exchange(conn net.Conn) (string, error) {
	packet := binary.BigEndian.AppendUint16(nil, uint16(len(q.packet)))
	if _, err := conn.Write(append(packet, q.packet...)); err != nil {
		return "", err
	}
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return "", err
	}
	reply := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(conn, reply); err != nil {
		return "", err
	}
	return q.read(reply)
}

// read gives a reply's code: the rcode, or NODATA for NOERROR without a record.
func (q query) read(reply []byte) (string, error) {
	var p dnsmessage.Parser
	head, err := p.Start(reply)
	if err != nil {
		return "", fmt.Errorf("the reply is not DNS: %w", err)
	}
	if !head.Response || head.ID != q.id {
		return "", errors.New("the reply belongs to another query")
	}
	questions, err := p.AllQuestions()
	if err != nil {
		return "", fmt.Errorf("the reply is not DNS: %w", err)
	}
	for _, got := range questions {
		if !strings.EqualFold(got.Name.String(), q.question.Name.String()) || got.Type != q.question.Type {
			return "", errors.New("the reply belongs to another question")
		}
	}
	if head.RCode != dnsmessage.RCodeSuccess {
		return rcodeName(head.RCode), nil
	}
	_, err = p.AnswerHeader()
	switch {
	case errors.Is(err, dnsmessage.ErrSectionDone):
		return codeNoData, nil
	case err != nil:
		return "", fmt.Errorf("the reply is not DNS: %w", err)
	}
	return codeNoError, nil
}

func rcodeName(r dnsmessage.RCode) string {
	switch r {
	case dnsmessage.RCodeSuccess:
		return codeNoError
	case dnsmessage.RCodeFormatError:
		return "FORMERR"
	case dnsmessage.RCodeServerFailure:
		return "SERVFAIL"
	case dnsmessage.RCodeNameError:
		return codeNXDomain
	case dnsmessage.RCodeNotImplemented:
		return "NOTIMP"
	case dnsmessage.RCodeRefused:
		return "REFUSED"
	}
	return fmt.Sprintf("RCODE%d", r)
}
