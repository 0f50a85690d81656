package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/source"
)

// sentJSON is what send prints under --json.
type sentJSON struct {
	OK   bool         `json:"ok"`
	Sent []answerJSON `json:"sent"`
}

type answerJSON struct {
	File   string `json:"file"`
	Status int    `json:"status,omitempty"`
	Error  string `json:"error,omitempty"`
}

func (a *app) send() *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use: "send SOURCE FILE...", Short: "Sign bodies as the provider does and send them to a running server",
		Long: "Sends each file as one request to the source of that name, signed with its first\n" +
			"secret. FILE holds the exact body; - is the standard input; the name of a sample\n" +
			"of the preset (hookfold send calendly invitee.created) does too.",
		Example: "hookfold send calendly reschedule.new.invitee.created\nhookfold send shop body.json --to https://hooks.example.com",
		Args:    count(2, -1, "a source and at least one file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			plan, err := a.plan()
			if err != nil {
				return err
			}
			src := plan.Source(args[0])
			if src == nil {
				var names []string
				for _, s := range plan.Sources {
					names = append(names, s.Name)
				}
				return usage(cmd, "the config has no source %s. Its sources are: %s", args[0], strings.Join(names, ", "))
			}
			if to == "" {
				to = "http://" + reachable(plan.Config.Listen)
			}
			if u, err := url.Parse(to); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
				return usage(cmd, "--to is %s; it is the base URL of a server, as in https://hooks.example.com", to)
			}
			return a.sendAll(cmd.Context(), src, strings.TrimSuffix(to, "/")+"/in/"+src.Name, args[1:])
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "base `URL` of the server (default: the config's listen address)")
	return cmd
}

// reachable turns an address to listen on into one to connect to.
func reachable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err == nil && (host == "" || net.ParseIP(host).IsUnspecified()) {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return listen
}

func (a *app) sendAll(ctx context.Context, src *mapping.Source, url string, files []string) error {
	signer, ok := src.Source.(source.Signer)
	if !ok {
		return fmt.Errorf("source %s cannot sign", src.Name)
	}
	client := &http.Client{
		Timeout:       30 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	out := sentJSON{OK: true, Sent: []answerJSON{}}
	for _, file := range files {
		answer := answerJSON{File: file}
		var err error
		if answer.Status, err = a.sendOne(ctx, client, signer, src, url, file); err != nil {
			answer.Error = err.Error()
		}
		out.OK = out.OK && answer.Status == http.StatusOK
		out.Sent = append(out.Sent, answer)
		if !a.json {
			a.printf("%s\n", a.answerLine(answer))
		}
	}
	if a.json {
		if err := a.printJSON(out); err != nil {
			return err
		}
	}
	if !out.OK {
		return errSaid
	}
	return nil
}

func (a *app) answerLine(x answerJSON) string {
	switch {
	case x.Error != "":
		return a.style.bad("not sent") + "  " + x.File + ": " + x.Error
	case x.Status != http.StatusOK:
		return a.style.bad(fmt.Sprint(x.Status)) + "  " + x.File + "  " + meaning(x.Status)
	}
	return a.style.good("200") + "  " + x.File
}

// meaning says what an answer of a Hookfold server tells its sender.
func meaning(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "the signature was refused: does the server know this secret? Its log says why"
	case http.StatusNotFound:
		return "the server has no source of this name"
	case http.StatusRequestEntityTooLarge:
		return "larger than the source's max_body"
	case http.StatusServiceUnavailable:
		return "the journal cannot take it now"
	}
	return http.StatusText(status)
}

func (a *app) sendOne(ctx context.Context, client *http.Client, signer source.Signer, src *mapping.Source, url, file string) (int, error) {
	header := http.Header{}
	body, err := a.bodyOf(file, src.Preset, header)
	if err != nil {
		return 0, err
	}
	everybody := src.Config.Verify != nil && src.Config.Verify.Kind == string(source.SchemeNone)
	if err := signer.Sign(header, body, time.Now()); err != nil && !(everybody && errors.Is(err, source.ErrUnsigned)) {
		return 0, fmt.Errorf("sign: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header = header
	resp, err := client.Do(req)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return 0, fmt.Errorf("%w. Is hookfold serve running?", err)
	}
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, err
}

// bodyOf reads a file, the standard input, or a sample of the preset, whose
// headers it sets.
func (a *app) bodyOf(file string, preset *source.Preset, header http.Header) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(a.In)
	}
	body, err := os.ReadFile(file)
	if !errors.Is(err, fs.ErrNotExist) {
		return body, err
	}
	for _, s := range preset.Samples {
		if s.Name == file || s.Name == preset.Name+"/"+file {
			for k := range s.Header {
				header.Set(k, s.Header.Get(k))
			}
			return s.Body, nil
		}
	}
	var names []string
	for _, s := range preset.Samples {
		names = append(names, strings.TrimPrefix(s.Name, preset.Name+"/"))
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("there is no such file, and preset %s has no samples", preset.Name)
	}
	return nil, fmt.Errorf("there is no such file, and no such sample of %s. Its samples are: %s", preset.Name, strings.Join(names, ", "))
}
