package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/jackc/pgx/v5"
)

const poolerSettings = `[databases]
* = host=%s port=%s

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
auth_type = trust
auth_file = %s
admin_users = postgres
pool_mode = transaction
default_pool_size = 40
max_client_conn = 500
server_login_retry = 1
query_wait_timeout = 10
server_check_delay = 0
ignore_startup_parameters = extra_float_digits
`

// NewPooler makes a PgBouncer in transaction mode in front of the PostgreSQL at this address. Its log goes into the
// folder.
func NewPooler(folder, database string) (*Server, error) {
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program = "/usr/sbin/pgbouncer" // where a plain user's PATH does not look
	}
	address, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(address)
	host, databasePort, err := net.SplitHostPort(database)
	if err != nil {
		return nil, fmt.Errorf("server: the pooler's database: %w", err)
	}
	// Outside the histories, which only this user may read.
	own, err := os.MkdirTemp("", "posthaste-pooler-")
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	users, settings := filepath.Join(own, "users.txt"), filepath.Join(own, "pgbouncer.ini")
	text := fmt.Appendf(nil, poolerSettings, host, databasePort, port, users)
	err = errors.Join(
		os.Chmod(own, 0o755),
		os.WriteFile(users, []byte("\"postgres\" \"\"\n"), 0o644),
		os.WriteFile(settings, text, 0o644),
	)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("server: %w", err), os.RemoveAll(own))
	}
	return &Server{
		Name: "PgBouncer", Address: address, Log: filepath.Join(folder, "pgbouncer.log"), Program: program,
		Args: []string{settings}, User: serviceUser(), folder: own,
	}, nil
}

// Execute gives a pooler a command of its console. PAUSE returns when no transaction runs any more, and lets those that
// come wait until RESUME: to clients nothing fails.
func (s *Server) Execute(ctx context.Context, command string) error {
	const console = "/pgbouncer?sslmode=disable&default_query_exec_mode=simple_protocol"
	conn, err := pgx.Connect(ctx, "postgres://postgres@"+s.Address+console)
	if err != nil {
		return fmt.Errorf("server: the console of %s: %w", s.Name, err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, command); err != nil {
		return fmt.Errorf("server: %s of %s: %w", command, s.Name, err)
	}
	return nil
}

// serviceUser is whom servers run as that do not run as root.
func serviceUser() *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	account, err := user.Lookup("posthaste")
	if err != nil {
		return nil // the server will say that it does not run as root
	}
	uid, _ := strconv.ParseUint(account.Uid, 10, 32)
	gid, _ := strconv.ParseUint(account.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}
