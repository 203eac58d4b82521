/** The persons of the relay: adding, inviting and disabling them. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { confirm } from "../device/account.ts";
import { useLoaded } from "./happenings.ts";
import { useHere } from "./here.ts";
import { InviteNote } from "./invite_note.tsx";
import { Action, Badge, Listed, useNow } from "./parts.tsx";
import type { InviteMade, PersonRow } from "./rows.ts";
import { type Column, Table } from "./table.tsx";
import { ago } from "./words.ts";

export function PersonsTable(): JSX.Element {
  const { rest } = useHere();
  const now = useNow();
  const [invite, setInvite] = useState<InviteMade | null>(null);
  const loaded = useLoaded<readonly PersonRow[]>(
    async () => (await rest.call<{ persons: PersonRow[] }>("GET", "/persons")).persons,
    ["rights.changed"],
  );
  const columns: readonly Column<PersonRow>[] = [
    {
      title: "Person",
      cell: (row) => (
        <>
          <strong>{row.name}</strong> {row.is_operator && <span class="quiet">operator</span>}
        </>
      ),
    },
    { title: "State", cell: (row) => <Badge tone={row.state === "enabled" ? "good" : "bad"}>{row.state}</Badge> },
    { title: "Devices", figure: true, cell: (row) => row.devices },
    { title: "Added", cell: (row) => ago(row.created_at, now) },
    { title: "Last used", cell: (row) => ago(row.last_used_at, now) },
    { title: "Actions", cell: (row) => <PersonActions person={row} changed={loaded.reload} invited={setInvite} /> },
  ];
  return (
    <>
      <Listed loaded={loaded}>{(rows) => <Table name="Persons" rows={rows} columns={columns} keyOf={(row) => row.person_id} />}</Listed>
      {invite !== null && <InviteNote made={invite} />}
      <AddPerson
        added={(made) => {
          setInvite(made);
          loaded.reload();
        }}
      />
    </>
  );
}

interface PersonActionsProps {
  readonly person: PersonRow;
  changed(): void;
  invited(made: InviteMade): void;
}

function PersonActions({ person, changed, invited }: PersonActionsProps): JSX.Element {
  const { rest } = useHere();
  const set = (state: PersonRow["state"]) => async (): Promise<string> => {
    const step_up_id = await confirm(rest, { purpose: "manage_relay" });
    await rest.call("POST", `/persons/${person.person_id}/state`, { state, step_up_id });
    changed();
    return `${person.name} is ${state}.`;
  };
  const inviteAgain = async (): Promise<string> => {
    const step_up_id = await confirm(rest, { purpose: "manage_relay" });
    invited(await rest.make<InviteMade>(`/persons/${person.person_id}/invites`, { step_up_id }));
    return "The invite is made.";
  };
  if (person.state === "disabled") return <Action label="Enable" name={`Enable ${person.name}`} run={set("enabled")} />;
  return (
    <span class="row">
      {person.devices === 0 && person.last_used_at === null && <Action label="Invite" name={`Invite ${person.name}`} run={inviteAgain} />}
      <Action
        label="Disable"
        name={`Disable ${person.name}`}
        question="End everything that they have running, and let none of their devices in?"
        kind="danger"
        run={set("disabled")}
      />
    </span>
  );
}

function AddPerson({ added }: { added(made: InviteMade): void }): JSX.Element {
  const { rest } = useHere();
  const [name, setName] = useState("");
  const [operator, setOperator] = useState(false);
  const add = async (): Promise<string> => {
    const step_up_id = await confirm(rest, { purpose: "manage_relay" });
    const made = await rest.make<InviteMade>("/persons", { name: name.trim(), is_operator: operator, step_up_id });
    added(made);
    setName("");
    setOperator(false);
    return `${made.name} is added.`;
  };
  return (
    <div class="row">
      <label class="field">
        <span>Add a person</span>
        <input value={name} maxLength={64} placeholder="Alex" onInput={(event) => setName(event.currentTarget.value)} />
      </label>
      <label class="check">
        <input type="checkbox" checked={operator} onChange={(event) => setOperator(event.currentTarget.checked)} />
        <span>operator</span>
      </label>
      <Action label="Add" name="Add the person" disabled={name.trim() === ""} run={add} />
    </div>
  );
}
