package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"quotad/internal/billing/accounts"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

// adminKey is an admin key that may be printed. secret is empty if no key may be printed.
type adminKey struct {
	secret string
	made   bool // the key was created during this start
}

// bootstrap ensures that an admin key exists. With --demo it also creates a meter, a plan and a customer.
func (n *node) bootstrap(ctx context.Context, s *settings) (adminKey, error) {
	ctx = plans.As(ctx, plans.Actor{By: plans.ActorStart})
	key, err := n.ensureAdminKey(ctx, s)
	if err != nil {
		return adminKey{}, fmt.Errorf("the first admin key: %w", err)
	}
	if s.Demo {
		if err := n.makeDemo(ctx); err != nil {
			return adminKey{}, fmt.Errorf("make the demo: %w", err)
		}
	}
	return key, nil
}

const bootstrapName = "bootstrap" // the name of admin keys that quotad creates during its start

func (n *node) ensureAdminKey(ctx context.Context, s *settings) (adminKey, error) {
	if s.AdminKey != "" {
		err := n.store.EnsureKey(ctx, s.AdminKey, bootstrapName, plans.ScopeAdmin)
		if fields, ok := errors.AsType[model.FieldErrors](err); ok {
			return adminKey{}, badSetting("admin-key", "the secret %s", fields[0].Detail)
		}
		return adminKey{}, err
	}
	if s.Demo {
		return n.ensureDemoKey(ctx, s.dataDir())
	}
	secret, err := n.store.FirstAdminKey(ctx, bootstrapName)
	return adminKey{secret, secret != ""}, err
}

// demoKeyFile is a file in the data directory that only quotad's own user can read. With it, a later `make run`
// can print a curl command that works. Without --demo, quotad stores no secret.
const demoKeyFile = "demo-admin-key"

// ensureDemoKey registers the secret in the demo's key file as an admin key. It writes a new file if the file is
// missing or if the store refuses the secret, for example because the key was revoked.
func (n *node) ensureDemoKey(ctx context.Context, dir string) (adminKey, error) {
	path := filepath.Join(dir, demoKeyFile)
	secret, err := readDemoKey(path)
	made := errors.Is(err, os.ErrNotExist)
	if made {
		secret, err = writeDemoKey(path)
	}
	if err != nil {
		return adminKey{}, err
	}
	err = n.store.EnsureKey(ctx, secret, bootstrapName, plans.ScopeAdmin)
	if _, refused := errors.AsType[model.FieldErrors](err); refused && !made {
		if err := os.Remove(path); err != nil {
			return adminKey{}, err
		}
		return n.ensureDemoKey(ctx, dir)
	}
	return adminKey{secret, made}, err
}

func readDemoKey(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text := make([]byte, 256)
	n, err := f.Read(text)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return strings.TrimSpace(string(text[:n])), nil
}

func writeDemoKey(path string) (string, error) {
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // never returns an error; it would end the program instead
	secret := "qk_" + base64.RawURLEncoding.EncodeToString(raw[:])
	// If an external database is used, the data directory may not exist yet.
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("%w: choose another directory with --data-dir (QUOTAD_DATA_DIR)", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(secret + "\n")
	return secret, errors.Join(err, f.Close())
}

// The names of the demo are those of the documentation's examples.
const (
	demoMeter    = "requests"
	demoPlan     = "demo"
	demoCustomer = "acme"
	demoSeller   = "Demo Inc."
)

// makeDemo creates the demo's meter, plan and customer if they are missing, and names the seller if the seller
// has no name. It does not change existing objects, because a user may have edited them.
func (n *node) makeDemo(ctx context.Context) error {
	_, err := n.store.GetMeter(ctx, demoMeter)
	if errors.Is(err, plans.ErrUnknownMeter) {
		_, _, err = n.store.PutMeter(ctx, demoMeter, plans.PutMeterInput{Unit: "request", Name: "API requests"})
	}
	if err == nil {
		err = n.nameSeller(ctx)
	}
	if err != nil {
		return err
	}
	_, _, err = n.store.PutPlan(ctx, demoPlan, plans.PlanInput{
		Name: "Demo", Currency: "USD", Interval: "month", IntervalCount: 1,
		Limits: []plans.Limit{
			{Meter: demoMeter, Spec: model.Spec{Name: "hourly", Algorithm: "fixed_window", Limit: 5000, Window: "1h"}},
			{Meter: demoMeter, Spec: model.Spec{Name: "daily", Algorithm: "token_bucket", Limit: 200, Window: "1d"}},
		},
	}, plans.Precondition{})
	if err != nil && !errors.Is(err, plans.ErrPreconditionRequired) {
		return err
	}
	_, _, err = n.store.PutCustomer(ctx, demoCustomer, plans.CustomerInput{
		Name: "Acme", Plan: demoPlan, Timezone: "UTC",
	}, plans.Precondition{})
	if errors.Is(err, plans.ErrPreconditionRequired) || errors.Is(err, plans.ErrArchived) {
		return nil
	}
	return err
}

// nameSeller names the default seller, which issues the invoices of accounts without a seller of their own.
// Invoices of a seller without a name are held.
func (n *node) nameSeller(ctx context.Context) error {
	s, err := n.accounts.Seller(ctx, "default")
	if err != nil || s.Name != "" {
		return err
	}
	s.Name = demoSeller
	_, _, err = n.accounts.PutSeller(ctx, accounts.SellerInput{Seller: s.Seller, CreditNotePrefix: s.CreditNotePrefix},
		plans.Precondition{Given: true, ETags: []string{s.ETag()}})
	if errors.Is(err, plans.ErrPrecondition) { // another request has just named the seller
		err = nil
	}
	return err
}
