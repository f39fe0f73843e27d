package mutants

// publishing are about sending an event to the broker.
var publishing = []mutant{
	{
		"stale-decision-sent",
		"what was decided before the process stood still is sent after it", "C7",
		[]change{
			{"relay/send.go", "if s.clock.now()-p.DecidedAt > s.config.margin() {", "if false {"},
		},
		test(relayTests, "TestWhatWasDecidedTooLongAgoIsNotSent", "too late: .* sent 2 times"),
	},
	{
		"no-publish-deadline",
		"a publish may take forever", "C6",
		[]change{
			{
				"relay/send.go",
				"\td.mutex.Lock()\n\tdefer d.mutex.Unlock()\n\tif now := time.Now(); d.current == nil",
				"\tif parent != nil {\n\t\treturn parent\n\t}\n\td.mutex.Lock()\n\tdefer d.mutex.Unlock()\n\tif now := " +
					"time.Now(); d.current == nil",
			},
		},
		test(fleetTests, "TestNoPublishOutlivesItsLease", "a publish without a deadline"),
	},
	{
		"settle-before-ack",
		"an event is settled when it is handed over, and not when it is acknowledged", "P1",
		[]change{
			{
				"relay/send.go",
				"\tbeforeSend(p)\n\terr := s.config.publisherOf(p.Topic).Publish(ctx, message)\n",
				"\tif ctx != nil {\n\t\tgo func() { _ = s.config.publisherOf(p.Topic).Publish(ctx, message) }()\n\t\treturn " +
					"core.Outcome{Class: core.Acknowledged}\n\t}\n\tbeforeSend(p)\n\terr := " +
					"s.config.publisherOf(p.Topic).Publish(ctx, message)\n",
			},
		},
		test(fleetTests, "TestPublishedAtOnlyAfterTheAcknowledgement", "in flight, and already "),
	},
	{
		"published-on-timeout",
		"a publish that was not answered in time is taken for acknowledged", "P3",
		[]change{
			{
				"relay/send.go",
				"class := publish.ClassOf(err)\n",
				"class := publish.ClassOf(err)\n\tif errors.Is(err, context.DeadlineExceeded) {\n\t\tclass = publish.Published\n" +
					"\t}\n",
			},
		},
		test(relayTests, "TestWhoseFaultAnErrorIs", "deadline: {Class:published "),
	},
	{
		"pipeline-passes-refused",
		"what is behind an event that was not sent is sent", "S4",
		[]change{
			{
				"relay/send.go",
				"if _, is := unsent[line]; is {",
				"if _, is := unsent[line]; is && false {",
			},
		},
		test(relayTests, "TestNothingPassesAnEventThatWasNotSent", "behind the head: class 0"),
	},
	{
		"redelivery-unmarked",
		"a message that the broker may have does not say so", "P1",
		[]change{
			{
				coreTests + "/publish.go",
				"\tr.lane.sent[r.Seq], r.startedAt = true, now\n",
				"\tredelivered = false\n\tr.lane.sent[r.Seq], r.startedAt = true, now\n",
			},
		},
		test(fleetTests, "TestASecondDeliveryIsMarkedAsSuch", "1 of 1 second deliveries are not marked"),
	},
	{
		"two-in-flight",
		"two events of one aggregate are in flight at a broker that does not keep their order", "S5",
		[]change{
			{
				coreTests + "/core.go",
				"\tif config.Observe == nil {",
				"\tconfig.Depth = func(string) int { return 2 }\n\tif config.Observe == nil {",
			},
		},
		seeds(few, "overlaps"),
	},
	{
		"resume-too-early",
		"a paused key of Pub/Sub goes on while messages wait behind the failure", "P7",
		[]change{
			{"broker/googlepubsub/publisher_topic.go", "if len(l.sent) > 0 {\n\t\treturn false", "if false {\n\t\treturn false"},
		},
		test(pubsubTests, "TestFailureInTheMiddle", `problems:\n *strange: |behind the failure were sent before`),
	},
	{
		"workers-of-the-library",
		"few requests of a Pub/Sub topic are under way, and what is given up waits behind them and is sent later", "P4",
		[]change{
			{
				"broker/googlepubsub/publisher_config.go", "settings.NumGoroutines = c.MaxOutstandingMessages",
				"settings.NumGoroutines = 50",
			},
			{"broker/googlepubsub/publisher_topic.go", "if given {", "if given && false {"},
		},
		test(pubsubTests, "TestContract", "events were given up while the broker hung, and sent later all the same"),
	},
	{
		"given-up-and-sent", "what Pub/Sub's client has of a key goes on after it was given up", "P4",
		[]change{{"broker/googlepubsub/publisher_topic.go", "if given {", "if given && false {"}},
		test(pubsubTests, "TestSlowerThanTheDeadline", "[0-9]+ copies, want those of one request"),
	},
	{
		"partial-outage-charged", "an event dies because Pub/Sub's servers of its key are in trouble", "P2",
		[]change{
			{
				"broker/googlepubsub/publisher_class.go",
				"codes.DeadlineExceeded, codes.Canceled, codes.Aborted, codes.Internal, codes.Unknown:", "codes.Canceled:",
			},
		},
		test(pubsubTests, "TestErrorsByCode", "class unknown, want topic"),
	},
	{
		"panic-charged", "a publisher that panics is taken for one that refuses the event", "P2",
		[]change{{"relay/panic.go", "core.Outcome{Class: core.Unknown,", "core.Outcome{Class: core.Rejected,"}},
		test(relayTests, "TestAPanicIsChargedOnlyWhenOthersPass", "all panic: got {Class:"),
	},
	{
		"client-retries", "the NATS client sends a message again by itself", "P4",
		[]change{
			{
				"broker/natsjetstream/publisher.go", "PublishMsgAsync(message, jetstream.WithRetryAttempts(0))",
				"PublishMsgAsync(message)",
			},
		},
		test(natsTests, "TestNothingIsSentTwice", "the message was sent 3 times"),
	},
}
