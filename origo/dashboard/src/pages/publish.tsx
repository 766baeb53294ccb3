/** Publish: a part of the page Library. A person drops a video or a folder, and the browser sends it to the proxies. */
import { Button, Group, Progress, TextInput } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState, type DragEvent } from "react";
import { PublicationName, type Release } from "@tributary/contract/publication-schema";
import { bytes, counted } from "../format";
import { chosen, dropped, nameFor, picked, type Chosen } from "../publish/files";
import { publish, type Step } from "../publish/publish";
import { Failure, Section } from "../ui";
import { Addresses } from "./addresses";

const NOTHING = { files: [], skipped: [] };
const SKIPPED_SHOWN = 5;

export function Publish() {
  const client = useQueryClient();
  const [{ files, skipped }, setTaken] = useState<Omit<Chosen, "title">>(NOTHING);
  const [name, setName] = useState("");
  const [step, setStep] = useState<Step>();
  const [released, setReleased] = useState<Release>();
  const [error, setError] = useState<Error | null>(null);
  useWarning(step !== undefined);

  const take = async (found: Promise<{ path: string; file: File }[]>): Promise<void> => {
    setReleased(undefined);
    try {
      const taken = await chosen(await found);
      setError(null);
      setTaken(taken);
      setName(nameFor(taken.title));
    } catch (fault) {
      setError(fault as Error);
    }
  };
  const start = async (): Promise<void> => {
    setError(null);
    try {
      setReleased(await publish(name, files, setStep));
      setTaken(NOTHING);
    } catch (fault) {
      setError(fault as Error);
    }
    setStep(undefined);
    await client.invalidateQueries({ queryKey: ["library"] });
  };
  const size = files.reduce((sum, { file }) => sum + file.size, 0);
  return (
    <Section title="Publish">
      <Failure error={error} />
      {released ? <Addresses {...released} /> : null}
      {step ? <Working step={step} /> : null}
      {!step && files.length > 0 ? (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            void start();
          }}
        >
          <p>
            {counted(files.length, "file")}, {bytes(size)}
          </p>
          <LeftOut skipped={skipped} />
          <Group align="end">
            <TextInput
              label="Name in the address"
              value={name}
              maxLength={64}
              error={name === "" || PublicationName.safeParse(name).success ? undefined : "a-z, 0-9, and . _ - inside"}
              onChange={(event) => setName(event.currentTarget.value)}
            />
            <Button type="submit" disabled={!PublicationName.safeParse(name).success}>
              Publish
            </Button>
            <Button variant="default" onClick={() => setTaken(NOTHING)}>
              Cancel
            </Button>
          </Group>
        </form>
      ) : null}
      {!step && files.length === 0 ? <Drop take={(found) => void take(found)} /> : null}
    </Section>
  );
}

function LeftOut({ skipped }: { skipped: readonly string[] }) {
  if (skipped.length === 0) return null;
  const more = skipped.length - SKIPPED_SHOWN;
  return (
    <>
      <p>Left out:</p>
      <ul>
        {skipped.slice(0, SKIPPED_SHOWN).map((each) => (
          <li key={each}>{each}</li>
        ))}
        {more > 0 ? <li>and {more} more</li> : null}
      </ul>
    </>
  );
}

function Working({ step }: { step: Step }) {
  const percent = Math.floor(100 * step.share);
  return (
    <div role="status">
      <p>
        {step.what}
        {step.what === "Releasing" ? "…" : ` ${percent} %`}
      </p>
      <Progress
        value={step.what === "Releasing" ? 100 : percent}
        animated={step.what === "Releasing"}
        aria-label={step.what}
      />
    </div>
  );
}

/** Asks before the page is left in the middle of the work. */
function useWarning(isBusy: boolean): void {
  useEffect(() => {
    if (!isBusy) return undefined;
    const warn = (event: BeforeUnloadEvent): void => event.preventDefault();
    addEventListener("beforeunload", warn);
    return () => removeEventListener("beforeunload", warn);
  }, [isBusy]);
}

function Drop({ take }: { take: (found: Promise<{ path: string; file: File }[]>) => void }) {
  const [isOver, setOver] = useState(false);
  const onDrop = (event: DragEvent): void => {
    event.preventDefault();
    setOver(false);
    take(dropped(event.dataTransfer.items));
  };
  return (
    <div
      className="drop"
      data-over={isOver}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={onDrop}
    >
      <p>Drop a video here, or a folder with HLS or any other files.</p>
      <Group justify="center">
        <Pick text="Choose files" take={take} />
        <Pick text="Choose a folder" folder take={take} />
      </Group>
    </div>
  );
}

function Pick({
  text,
  folder = false,
  take,
}: {
  text: string;
  folder?: boolean;
  take: (found: Promise<{ path: string; file: File }[]>) => void;
}) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label={text}
        {...(folder ? { webkitdirectory: "" } : {})}
        onChange={({ currentTarget: { files } }) => files && files.length > 0 && take(Promise.resolve(picked(files)))}
      />
      <Button variant="default" size="compact-md" onClick={() => input.current?.click()}>
        {text}
      </Button>
    </>
  );
}
