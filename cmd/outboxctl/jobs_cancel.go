package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// cancelJob ends a job and the copies of it that are not sent yet, or the copies that an action asked for without a
// job. Sent again with the same action it changes nothing but copies that are still open.
func cancelJob(ctx context.Context, out io.Writer, note func(string, ...any), op *operator.Operator,
	action operator.Action, id outbox.ID,
) error {
	job, unknown := op.Job(ctx, id) // if that fails, copies are ended all the same
	outcome, err := op.CancelJob(ctx, action, id)
	again := usedBefore(err) // for the copies, or for something else: then the end of the copies fails, too
	if err != nil && !again {
		return ofAction(err, action.ID)
	}
	ofJob := outcome == operator.Done || outcome == operator.DoneBefore
	ofCopies := action
	if ofJob { // the job's end is one action, that of its copies another
		ofCopies = action.OfCopies()
	}
	mayHaveCopies := job.Verb == operator.VerbRedeliver &&
		(again || outcome == operator.Done || !job.Ended() || job.Copies.Open > 0)
	if unknown == nil && !mayHaveCopies {
		if ofJob {
			return say(out, "cancel: job %s is canceled, %s; action %s%s\n", id, jobCounts(job), action.ID,
				doneBefore(outcome))
		}
		if again {
			return ofAction(err, action.ID)
		}
		return noChange("cancel", job)
	}
	canceled, err := cancelCopies(ctx, op, ofCopies, id, note)
	switch {
	case err != nil && ofJob:
		return fmt.Errorf("job %s is canceled (action %s), but not all of its copies: %w", id, action.ID, err)
	case err != nil:
		return err
	case ofJob:
		copies := copiesOf(canceled) + " will not be sent"
		if canceled > 0 { // otherwise the log need not have it
			copies += ", action " + ofCopies.ID.String()
		}
		return say(out, "cancel: job %s is canceled, action %s%s; %s\n", id, action.ID, doneBefore(outcome), copies)
	case again || canceled > 0:
		return say(out, "cancel: %s will not be sent, action %s\n", copiesOf(canceled), ofCopies.ID)
	case outcome == operator.NotFound:
		return noCopies(ctx, op, id)
	case unknown != nil:
		return fmt.Errorf("cancel: job %s has ended, and none of its copies is open", id)
	}
	return noChange("cancel", job)
}

// noCopies says why there were none to cancel, of an id that is no job's.
func noCopies(ctx context.Context, op *operator.Operator, id outbox.ID) error {
	copies, err := op.Copies(ctx, id)
	switch {
	case errors.Is(err, operator.ErrNoCopies):
		return noJob(operator.ErrNoJob, id)
	case err != nil:
		return err
	}
	return fmt.Errorf("cancel: no copy of action %s is open: %s", id, copiesText(copies))
}

// usedBefore tells whether the database knows the action's id, from another decision.
func usedBefore(err error) bool {
	var state sqlState
	return errors.As(err, &state) && state.SQLState() == "23505"
}

// lookAgain is how long a relay is given for what it has in its hands.
const lookAgain = 200 * time.Millisecond

// cancelCopies ends the copies of an action that are not sent yet.
func cancelCopies(ctx context.Context, op *operator.Operator, action operator.Action, of outbox.ID,
	note func(string, ...any),
) (total int64, err error) {
	waited := 0
	for {
		canceled, left, err := op.Cancel(ctx, action, of)
		if err != nil {
			return total, ofAction(err, action.ID)
		}
		if total += canceled; left == 0 {
			return total, nil
		}
		if canceled == 0 {
			if waited++; waited == 25 {
				note("A relay holds %s (it may have died); waiting until %s", copiesOf(left),
					map[bool]string{true: "it is sent or given back", false: "they are sent or given back"}[left == 1])
			}
			if err := wait.For(ctx, lookAgain); err != nil {
				return total, err
			}
		}
	}
}
