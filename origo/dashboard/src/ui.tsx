/**
 * Ui: the small parts that pages are made of. Data enters the document as text and attributes only, never as markup.
 */
import { Alert, Button, Group, Modal, Stack } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";
import { Fault } from "./api";

export type Tone = "good" | "warn" | "bad" | "plain" | "accent";

export function Page({ title, aside, children }: { title: string; aside?: ReactNode; children: ReactNode }) {
  return (
    <>
      <div className="page-head">
        <h1>{title}</h1>
        {aside}
      </div>
      {children}
    </>
  );
}

export function Section({ title, aside, children }: { title: string; aside?: ReactNode; children: ReactNode }) {
  return (
    <section className="card" aria-label={title}>
      <div className="section-head">
        <h2>{title}</h2>
        {aside}
      </div>
      {children}
    </section>
  );
}

export function Tag({
  tone = "plain",
  title,
  children,
}: {
  tone?: Tone;
  title?: string | undefined;
  children: ReactNode;
}) {
  return (
    <span className="tag" data-tone={tone} title={title}>
      {children}
    </span>
  );
}

export function Tile({ label, value, note }: { label: string; value: string; note?: string }) {
  return (
    <div className="tile">
      <dt>{label}</dt>
      <dd>
        {value}
        {note ? <small>{note}</small> : null}
      </dd>
    </div>
  );
}

/** A heading of a table. `num` stands over numbers; a `hidden` heading is only read aloud. */
export type Head = string | { text: string; num?: boolean; hidden?: boolean };

interface DataTableProps {
  /** The name of the table for people who cannot see it. */
  label: string;
  heads: readonly Head[];
  /** Further classes of the table. With `cards`, each row is a card on a phone. */
  className?: string;
  /** True for a table that does not stand in a section. */
  framed?: boolean;
  /** The rows. */
  children: ReactNode;
  foot?: ReactNode;
}

export function DataTable({ label, heads, className = "", framed = false, children, foot }: DataTableProps) {
  return (
    <div className={framed ? "table-wrap card" : "table-wrap"} tabIndex={0} role="region" aria-label={label}>
      <table className={`data ${className}`.trim()}>
        <thead>
          <tr>
            {heads
              .map((head) => (typeof head === "string" ? { text: head } : head))
              .map(({ text, num, hidden }) => (
                <th key={text} scope="col" className={num ? "num" : undefined}>
                  {hidden ? <span className="hidden">{text}</span> : text}
                </th>
              ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
        {foot ? <tfoot>{foot}</tfoot> : null}
      </table>
    </div>
  );
}

export const Empty = ({ children }: { children: ReactNode }) => <p className="empty">{children}</p>;

/** One name and value in a list of facts. Shows nothing when there is no value. */
export function Fact({ name, children }: { name: string; children?: ReactNode }) {
  return children === undefined || children === null || children === "" ? null : (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** Shows an error with Origo's message and the field that it is about. Shows nothing when there is no error. */
export function Failure({ error }: { error: Error | null }) {
  if (error === null) return null;
  const field = error instanceof Fault ? error.error.field : undefined;
  return (
    <Alert color="red" role="alert" variant="outline" className="failure">
      {field !== undefined && !error.message.startsWith(field) ? <b>{field}: </b> : null}
      {error.message}
    </Alert>
  );
}

interface DialogProps {
  title: string;
  opened: boolean;
  close: () => void;
  size?: string;
  children: ReactNode;
}

/** A dialog. It does not lock scrolling, because that would add a style element, which the security policy forbids. */
export function Dialog({ title, opened, close, size = "md", children }: DialogProps) {
  return (
    <Modal
      title={title}
      opened={opened}
      onClose={close}
      size={size}
      lockScroll={false}
      closeButtonProps={{ "aria-label": "Close" }}
    >
      {children}
    </Modal>
  );
}

interface ConfirmProps {
  title: string;
  action: string;
  danger?: boolean;
  /** Runs when the person agrees. If it fails, the dialog stays open and shows the error. */
  run: () => Promise<unknown>;
  close: () => void;
  children?: ReactNode;
}

/** Asks before something is done. Mount it only while it asks. */
export function Confirm({ title, action, danger = false, run, close, children }: ConfirmProps) {
  const work = useMutation({ mutationFn: run, onSuccess: close });
  return (
    <Dialog title={title} opened close={close}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          work.mutate();
        }}
      >
        <Stack>
          {children}
          <Failure error={work.error} />
          <Group justify="flex-end">
            <Button variant="default" onClick={close}>
              Cancel
            </Button>
            <Button
              type="submit"
              color={danger ? "red" : "blue"}
              loading={work.isPending}
              data-autofocus={danger ? undefined : true}
            >
              {action}
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  );
}

interface DangerButtonProps {
  /** What the button says, and the dialog's button. */
  action: string;
  /** What it is done to, for the dialog's title. */
  what: string;
  run: () => Promise<unknown>;
  /** What follows from it. */
  children: ReactNode;
}

/** A button in a table for what cannot be undone. It asks before it is done. */
export function DangerButton({ action, what, run, children }: DangerButtonProps) {
  const [isAsked, setAsked] = useState(false);
  return (
    <>
      <Button size="compact-sm" variant="subtle" color="red" onClick={() => setAsked(true)}>
        {action}
      </Button>
      {isAsked ? (
        <Confirm title={`${action} ${what}?`} action={action} danger run={run} close={() => setAsked(false)}>
          <p>{children}</p>
        </Confirm>
      ) : null}
    </>
  );
}
