/** What the relay answers, as docs/api/openapi.yaml has it: only what the pages show. */

export type Presence = "online" | "lost" | "offline";

export interface Me {
  readonly person_id: string;
  readonly person_name: string;
  readonly is_operator: boolean;
  readonly device_id: string;
  readonly device_name: string;
}

export interface HostRow {
  readonly host_id: string;
  readonly name: string;
  readonly state: "new" | "pending" | "active" | "disabled" | "retired";
  readonly disabled_reason: string | null;
  readonly presence: Presence;
  /** Profile to the session users that it allows. */
  readonly profiles: { readonly [profile: string]: readonly string[] };
  readonly channel_key: string | null;
  readonly fingerprint: string | null;
  readonly owner: boolean;
  /** What the caller's grants name; empty for an owner, who may be anybody. */
  readonly session_users: readonly string[];
  readonly last_seen_at: string | null;
}

export interface SessionRow {
  readonly session_id: string;
  readonly host_id: string;
  readonly host_name: string;
  readonly person_id: string;
  readonly person_name: string;
  readonly device_id: string;
  readonly device_name: string;
  readonly profile: string;
  readonly session_user: string;
  readonly state: "opening" | "active" | "detached" | "closed";
  readonly close_reason: string | null;
  readonly opened_at: string;
  readonly detached_at: string | null;
  readonly bytes_in: number;
  readonly bytes_out: number;
}

export interface SessionPage {
  readonly sessions: readonly SessionRow[];
  readonly before: string | null;
}

export interface DeviceRow {
  readonly device_id: string;
  readonly name: string;
  readonly kind: "browser" | "cli";
  readonly added_by: "approval" | "invite" | "passkey";
  readonly fingerprint: string;
  readonly created_at: string;
  readonly last_used_at: string | null;
  readonly revoked_at: string | null;
}

export interface PasskeyRow {
  readonly passkey_id: string;
  readonly name: string;
  readonly backed_up: boolean;
  readonly created_at: string;
  readonly last_used_at: string | null;
}

export interface WaitingDevice {
  readonly device_login_id: string;
  readonly name: string;
  readonly fingerprint: string;
}

export interface InviteMade {
  readonly name: string;
  readonly invite: string | null;
  readonly expires_in_s: number | null;
}

export interface CodeMade {
  readonly code: string;
  readonly expires_in_s: number;
}

export interface PersonRow {
  readonly person_id: string;
  readonly name: string;
  readonly is_operator: boolean;
  readonly state: "enabled" | "disabled";
  readonly devices: number;
  readonly created_at: string;
  readonly last_used_at: string | null;
}

export interface NodeRow {
  readonly node_id: string;
  readonly role: "api" | "worker" | "all";
  readonly origin: string | null;
  readonly state: "active" | "draining" | "leaving";
  /** Its last word is fresh. */
  readonly heard: boolean;
  readonly silent_s: number;
  readonly started_at: string;
  readonly version: string;
  readonly controls: number;
  readonly sides: number;
  readonly pairs: number;
  readonly pending: number;
  /** Since it started. */
  readonly unpaired_client: number;
  readonly unpaired_host: number;
  readonly echo_age_s: number | null;
  readonly forwarded_bytes: number;
}

export interface AuditEntry {
  readonly position: number;
  readonly at: string;
  readonly action: string;
  readonly code: string;
  readonly person_id: string | null;
  readonly host_id: string | null;
  readonly session_id: string | null;
  readonly subject_person_id: string | null;
}

export interface AuditPage {
  readonly entries: readonly AuditEntry[];
  readonly before: number | null;
}
