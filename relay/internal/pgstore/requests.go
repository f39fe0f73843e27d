package pgstore

import (
	"context"

	"github.com/posthaste-dev/posthaste/internal/crash"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// TakeRequests takes open requests that are due, in lanes that are still held, and lists those that the relay has
// without knowing of them.
func (s *Store) TakeRequests(ctx context.Context, take core.TakeRequests) (answer core.RequestsAnswer, err error) {
	answer.Seen, err = s.scan(ctx, "take requests", s.sql.takeRequests, takeArgs(take),
		func(decode *decoder, raw [][]byte) {
			columns := raw[eventColumns:]
			if columns[0] == nil {
				answer.Missing = append(answer.Missing, core.LaneType{Lane: decode.int16(raw[0]), Type: decode.intern(raw[8])})
				return
			}
			request := core.Request{
				ID: decode.int64(columns[0]), Action: decode.id(columns[1]), Topic: decode.intern(columns[2]),
				Taken: int(decode.int32(columns[3])), Attempts: decode.int32(columns[4]), Version: decode.int64(columns[5]),
				Event: decode.event(raw),
			}
			if request.Taken > 0 {
				answer.Requests = append(answer.Requests, request)
			} else {
				answer.Forgotten = append(answer.Forgotten, request)
			}
		})
	return answer, err
}

func takeArgs(take core.TakeRequests) []any {
	var lanes, lanesOfTypes []int16
	var topics, types []string
	for _, busy := range take.Busy {
		lanes, topics = append(lanes, busy.Lane), append(topics, busy.Topic)
		for _, eventType := range busy.Types {
			lanesOfTypes, types = append(lanesOfTypes, busy.Lane), append(types, eventType)
		}
	}
	return []any{
		numbers(take.Lanes), uuid(take.Relay), uuid(take.Token), texts(take.Types), texts(take.PausedTypes),
		texts(take.PausedTopics), int32(take.Limit), int32(take.Look), int64(take.MaxBytes),
		numbers(lanes), texts(topics), numbers(lanesOfTypes), texts(types), append([]int64{}, take.InMemory...),
	}
}

// SettleRequests writes down how requests ended, if the lanes are still held; else it changes nothing.
func (s *Store) SettleRequests(ctx context.Context, settle *core.SettleRequests) (answer core.SettleAnswer, err error) {
	n := len(settle.Ends)
	ids, lanes, states, attempts, errors, versions := make([]int64, n), make([]int16, n), make([]int16, n),
		make([]int32, n), make([]string, n), make([]int64, n)
	delivered := false
	for i, end := range settle.Ends {
		delivered = delivered || end.State == core.RequestDelivered
		ids[i], lanes[i], states[i], attempts[i], errors[i] = end.ID, end.Lane, int16(end.State), end.Attempts,
			readable(end.Error)
		versions[i] = end.Version
	}
	if delivered { // of copies that are given back nothing was sent
		crash.Point("copy.before_settle")
	}
	if err := s.pool.QueryRow(ctx, s.sql.settleRequests, uuid(settle.Relay), uuid(settle.Token), numbers(settle.Lanes),
		ids, lanes, states, attempts, errors, versions).Scan(&answer.Applied, &answer.Held); err != nil {
		return core.SettleAnswer{}, failed("settle requests", err)
	}
	crash.Point("copy.after_settle")
	return answer, nil
}
