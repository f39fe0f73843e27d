package ops

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// forbidden is all by which an operator changes something, and every way around it.
func forbidden() []string {
	const id = "'01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e'::uuid"
	list := []string{
		"SELECT public.outbox_start_job('a', 'b', 'redrive', '', 1, 1)",
		"SELECT public.outbox_change_job('a', 'b', 'cancel', " + id + ")",
		"SELECT public.outbox_take_job(" + id + ", " + id + ", 'a', 1)",
		"SELECT public.outbox_work_job(" + id + ", " + id + ", 0, 1, '{}')",
		"SELECT public.outbox_fail_job(" + id + ", " + id + ", 'a')",
		"SELECT public.outbox_act('a', 'b', 'redrive', '{}')",
		"SELECT public.outbox_decide('a', 'b', 'redrive', '{}', " + id + ", true, true)",
		"SELECT public.outbox_redeliver('a', 'b', '{}')",
		"SELECT public.outbox_cancel('a', 'b', " + id + ")",
		"SELECT public.outbox_reissue('a', 'b', '{}')",
		"SELECT public.outbox_erase('a', 'b', '{}')",
		"SELECT public.outbox_look('a', 'b', gen_random_uuid())",
		"SELECT public.outbox_limit('a', 'b', 'orders', 1)",
		"SELECT public.outbox_pause('a', 'b', 'all', '')",
		"SELECT public.outbox_resume('a', 'b', 'all', '')",
		"SELECT public.outbox_grant('operator', current_user)",
	}
	for table, column := range map[string]string{
		"outbox_jobs": "state", "outbox_actions": "actor", "outbox_requests": "topic", "outbox_dlq": "topic",
		"outbox_held": "kind", "outbox_events": "state", "outbox_pauses": "actor",
	} {
		list = append(list, fmt.Sprintf("INSERT INTO public.%s (%s) SELECT %s FROM public.%s", table, column, column, table),
			fmt.Sprintf("UPDATE public.%s SET %s = NULL WHERE false", table, column),
			fmt.Sprintf("DELETE FROM public.%s WHERE false", table), "TRUNCATE public."+table)
	}
	return list
}

// noRight is what PostgreSQL says to somebody who may not.
const noRight = "42501"

// viewer tries all of it with the viewer's grants, and counts what is not refused. The same role can see the jobs.
func (r *run) viewer(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, r.db.urls["viewer"])
	if err != nil {
		return fmt.Errorf("ops: the viewer: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for _, statement := range forbidden() {
		_, err := conn.Exec(ctx, statement, pgx.QueryExecModeSimpleProtocol)
		var found *pgconn.PgError
		r.report.ViewerTried++
		if !errors.As(err, &found) || found.Code != noRight {
			r.report.ViewerMay = append(r.report.ViewerMay, fmt.Sprintf("%s: %v", statement, err))
		}
	}
	person := operator.New(conn, outbox.DefaultSchema)
	jobs, err := person.Jobs(ctx, true, nil, 10)
	if err != nil || len(jobs) == 0 {
		return fmt.Errorf("ops: the viewer sees %d jobs: %w", len(jobs), err)
	}
	if may, err := person.MayWork(ctx); err != nil || may {
		r.report.ViewerMay = append(r.report.ViewerMay, fmt.Sprintf("work: %t, %v", may, err))
	}
	if _, err := person.StartJob(ctx, newAction("a viewer"), operator.JobSpec{Verb: operator.VerbRedrive}, 0); err == nil {
		r.report.ViewerMay = append(r.report.ViewerMay, "start a job")
	}
	return nil
}
