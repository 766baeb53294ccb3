/** One-time code: makes a code that lets one proxy or publisher in, and shows once how to use it. */
import { Button, Code, CopyButton, Stack } from "@mantine/core";
import { useState } from "react";
import type { EnrolmentCode } from "@tributary/contract/admin-schema";
import { api } from "./api";
import { clock } from "./format";
import { Dialog, Failure } from "./ui";

interface OneTimeCodeProps {
  /** The button's text and the dialog's title. */
  title: string;
  /** Where Origo makes the code. */
  path: string;
  /** Who is let in. */
  who: string;
  /** What to do with the text. */
  advice: string;
  /** What the person copies. */
  textOf: (code: string) => string;
}

export function OneTimeCode({ title, path, who, advice, textOf }: OneTimeCodeProps) {
  const [made, setMade] = useState<EnrolmentCode>();
  const [error, setError] = useState<Error | null>(null);
  const make = (): void => {
    setError(null);
    api.post<EnrolmentCode>(path, undefined).then(setMade, setError);
  };
  const text = textOf(made?.code ?? "");
  return (
    <>
      <Failure error={error} />
      <Button size="compact-md" onClick={make}>
        {title}
      </Button>
      <Dialog title={title} opened={made !== undefined} close={() => setMade(undefined)} size="lg">
        <Stack gap="sm">
          <p>{advice}</p>
          <Code block>{text}</Code>
          <p>
            The code lets one {who} in, until {made ? clock(made.expiresAtMs, Date.now()) : ""}. It is shown only now.
          </p>
          <CopyButton value={text}>
            {({ copied, copy }) => <Button onClick={copy}>{copied ? "Copied" : "Copy"}</Button>}
          </CopyButton>
        </Stack>
      </Dialog>
    </>
  );
}
