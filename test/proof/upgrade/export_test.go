package upgrade

import "context"

// Rejected starts the new publisher of the plan before a schema of this version.
func Rejected(ctx context.Context, plan Plan, found, needed int) (problem string, err error) {
	e, err := newEnv(ctx, plan)
	if err != nil {
		return "", err
	}
	problem, err = e.rejected(ctx, found, needed, plan.Patience)
	if err := e.close(); err != nil {
		return "", err
	}
	return problem, err
}

// Full is a report in which all is as it must be.
func Full(plan Plan) *Report {
	r := &Report{
		plan: plan, Legs: plan.legs(), Version: plan.Outbox.New, Kills: 2 * plan.Kills, Drained: true,
		OldEmitted: plan.Each, NewEmitted: plan.Each, OldHandled: plan.Each, NewHandled: plan.Each,
	}
	for i := range r.Legs {
		r.Legs[i].Events = r.Legs[i].Want
	}
	return r
}
