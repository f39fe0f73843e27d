# A topic of events, a subscription of it for one consumer, and the topic that keeps that consumer's dead letters.
# docs/guide/brokers/pubsub.md says why each of these is as it is, and has the same as gcloud commands.

variable "project" {
  description = "The project's id."
  type        = string
}

variable "region" {
  description = "Where messages are stored. The publishers name the endpoint of the same region."
  type        = string
}

variable "topic" {
  description = "The topic of the contracts."
  type        = string
}

variable "consumer" {
  description = "The consumer's name; its subscription has it too."
  type        = string
}

variable "publisher_member" {
  description = "Who runs the relay, for instance serviceAccount:relay@my-project.iam.gserviceaccount.com."
  type        = string
}

variable "consumer_member" {
  description = "Who runs the consumer."
  type        = string
}

data "google_project" "this" {
  project_id = var.project
}

locals {
  # Pub/Sub itself moves dead letters, as this account.
  service_agent = "serviceAccount:service-${data.google_project.this.number}@gcp-sa-pubsub.iam.gserviceaccount.com"
}

resource "google_pubsub_topic" "events" {
  project = var.project
  name    = var.topic

  message_storage_policy {
    allowed_persistence_regions = [var.region]
  }
}

resource "google_pubsub_topic_iam_member" "publisher" {
  project = var.project
  topic   = google_pubsub_topic.events.name
  role    = "roles/pubsub.publisher"
  member  = var.publisher_member
}

resource "google_pubsub_subscription" "consumer" {
  project = var.project
  name    = var.consumer
  topic   = google_pubsub_topic.events.id

  enable_message_ordering    = true # cannot be changed later
  ack_deadline_seconds       = 60   # the loop sets leases of its own
  message_retention_duration = "604800s"

  expiration_policy {
    ttl = "" # never
  }

  retry_policy {
    minimum_backoff = "10s"
    maximum_backoff = "600s"
  }

  dead_letter_policy {
    dead_letter_topic     = google_pubsub_topic.dead_letters.id
    max_delivery_attempts = 10
  }

  lifecycle {
    prevent_destroy = true # with it go the events that nobody has handled
  }
}

# To receive, and to be told how the subscription is set up.
resource "google_pubsub_subscription_iam_member" "consumer" {
  for_each     = toset(["roles/pubsub.subscriber", "roles/pubsub.viewer"])
  project      = var.project
  subscription = google_pubsub_subscription.consumer.name
  role         = each.value
  member       = var.consumer_member
}

resource "google_pubsub_topic" "dead_letters" {
  project = var.project
  name    = "${var.consumer}-dead"

  message_storage_policy {
    allowed_persistence_regions = [var.region]
  }
}

# A topic without a subscription keeps nothing. 31 days are the most there is; without a word it is a week.
resource "google_pubsub_subscription" "dead_letters" {
  project = var.project
  name    = "${var.consumer}-dead"
  topic   = google_pubsub_topic.dead_letters.id

  enable_message_ordering    = true
  message_retention_duration = "2678400s"

  expiration_policy {
    ttl = ""
  }

  lifecycle {
    prevent_destroy = true
  }
}

# Without these two nothing is ever moved to the dead letters.
resource "google_pubsub_topic_iam_member" "dead_letters" {
  project = var.project
  topic   = google_pubsub_topic.dead_letters.name
  role    = "roles/pubsub.publisher"
  member  = local.service_agent
}

resource "google_pubsub_subscription_iam_member" "dead_letters" {
  project      = var.project
  subscription = google_pubsub_subscription.consumer.name
  role         = "roles/pubsub.subscriber"
  member       = local.service_agent
}
