/**
 * Ui: the small parts that every page is made of. Data enters the document as text and attributes only, never as
 * markup.
 */
import { Alert, Button, Group, Modal, Stack } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import type { ReactNode } from "react";
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

export const Empty = ({ children }: { children: ReactNode }) => <p className="empty">{children}</p>;

/** A number of a list of facts, or a row of a definition list; left out when there is nothing to say. */
export function Fact({ name, children }: { name: string; children?: ReactNode }) {
  return children === undefined || children === null || children === "" ? null : (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** What went wrong, in Origo's words with the field they are about; nothing when nothing did. */
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

/** A dialog; scrolling is not locked, since that would put a style element into the page. */
export function Dialog({ title, opened, close, size = "md", children }: DialogProps) {
  return (
    <Modal
      title={title}
      opened={opened}
      onClose={close}
      size={size}
      lockScroll={false}
      closeButtonProps={{ "aria-label": "Close" }}
      transitionProps={{ duration: 0 }}
    >
      {children}
    </Modal>
  );
}

interface ConfirmProps {
  title: string;
  action: string;
  danger?: boolean;
  /** What is done when the person agrees; the dialog stays open with the reason when it fails. */
  run: () => Promise<unknown>;
  close: () => void;
  children?: ReactNode;
}

/** Asks before something is done. Mounted only while it asks. */
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
