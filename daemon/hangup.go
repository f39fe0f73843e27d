package daemon

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
)

// answerHangups answers SIGHUP until ctx ends. There is nothing to reload: what is rotated is read at every connect,
// and the rest is settled at the start. So a hang-up is a question, and the log has the answer: would what the files
// hold now do?
func (p *publisher) answerHangups(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.program.hangups:
			p.sayFiles(ctx)
			p.sayLogin(ctx)
		}
	}
}

// sayFiles tells what has changed since the start, and whether a restart would take it.
func (p *publisher) sayFiles(ctx context.Context) {
	now, err := p.program.load(p.args, p.environ)
	if err != nil {
		p.logger.WarnContext(ctx, "SIGHUP: a restart would refuse what the files hold now; this publisher goes on with "+
			"what it has. Fix them before you restart",
			slog.String("error", err.Error()))
		return
	}
	rotated, others := p.values.Changes(now.values)
	if p.file != nil && now.file.SHA256 != p.file.SHA256 {
		others = append(others, registryFile.Name()+" (its contents)")
	}
	p.logger.InfoContext(ctx, "SIGHUP: credentials and certificates are read at every connect, all else at the start",
		slog.Any("in_use_from_the_next_connect", rotated), slog.Any("needs_a_restart", others))
}

// sayLogin tries the credentials that the files hold now, so that a wrong one is known before the connections of
// the old one end.
func (p *publisher) sayLogin(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	settings := p.database.Config().ConnConfig
	p.credentials.renew(ctx, settings)
	connection, err := pgx.ConnectConfig(ctx, settings)
	if err != nil {
		p.logger.WarnContext(ctx,
			"SIGHUP: the database does not take the credentials that the files hold now; connections that are open go on",
			slog.String("error", err.Error()))
		return
	}
	_ = connection.Close(ctx)
	p.logger.InfoContext(ctx, "SIGHUP: the database takes the credentials that the files hold now")
}
