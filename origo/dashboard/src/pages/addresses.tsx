/** Addresses: where a publication plays, to copy. */
import { Button, Code, CopyButton, Stack } from "@mantine/core";

/** The text of a page that shows the player of a publication. */
const frameOf = (embed: string): string =>
  `<iframe src="${embed}" width="640" height="360" allow="autoplay; fullscreen" allowfullscreen></iframe>`;

export function Addresses({ address, embed }: { address: string; embed: string }) {
  return (
    <Stack gap="sm" align="flex-start" className="addresses">
      <p>
        Everyone can watch it at <a href={address}>{address}</a>. For a player, add the path of a file, as in
        master.m3u8.
      </p>
      <Copied text={address} what="address" />
      <p>To show it in a page of yours:</p>
      <Code block>{frameOf(embed)}</Code>
      <Copied text={frameOf(embed)} what="embed text" />
    </Stack>
  );
}

const Copied = ({ text, what }: { text: string; what: string }) => (
  <CopyButton value={text}>
    {({ copied, copy }) => (
      <Button size="compact-md" variant="default" onClick={copy}>
        {copied ? "Copied" : `Copy the ${what}`}
      </Button>
    )}
  </CopyButton>
);
