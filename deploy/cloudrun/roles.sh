#!/usr/bin/env bash
# The least that Vademecum needs on Cloud Run: one service account, one role in the project for Firestore, and one on
# one secret. Run it again at any time. Usage: roles.sh PROJECT REGION
set -euo pipefail

project=${1:?the Google Cloud project}
region=${2:?the region, such as europe-west1}
account=vademecum@$project.iam.gserviceaccount.com

gcloud services enable run.googleapis.com firestore.googleapis.com secretmanager.googleapis.com \
  artifactregistry.googleapis.com --project="$project"

gcloud iam service-accounts describe "$account" --project="$project" >/dev/null 2>&1 ||
  gcloud iam service-accounts create vademecum --display-name="Vademecum" --project="$project"

# Documents of the default database, and nothing else in the project.
gcloud projects add-iam-policy-binding "$project" --member="serviceAccount:$account" --role=roles/datastore.user \
  --condition="expression=resource.name.startsWith('projects/$project/databases/(default)'),title=vademecum" >/dev/null

# The state key: made once, and readable by this account alone.
if ! gcloud secrets describe vademecum-state-key --project="$project" >/dev/null 2>&1; then
  head -c 32 /dev/urandom | base64 | tr '+/' '-_' |
    gcloud secrets create vademecum-state-key --data-file=- --replication-policy=automatic --project="$project"
fi
gcloud secrets add-iam-policy-binding vademecum-state-key --member="serviceAccount:$account" \
  --role=roles/secretmanager.secretAccessor --project="$project" >/dev/null

gcloud artifacts repositories describe vademecum --location="$region" --project="$project" >/dev/null 2>&1 ||
  gcloud artifacts repositories create vademecum --repository-format=docker --location="$region" --project="$project"

# Anybody may call the service: the server itself decides who enters.
if gcloud run services describe vademecum --region="$region" --project="$project" >/dev/null 2>&1; then
  gcloud run services add-iam-policy-binding vademecum --member=allUsers --role=roles/run.invoker \
    --region="$region" --project="$project" >/dev/null
fi
