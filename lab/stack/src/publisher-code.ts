/** The one-time code that lets a publisher in, as an admin makes it in the dashboard of an Origo without logins. */
export async function publisherCode(origoUrl: string): Promise<string> {
  const { csrfToken } = (await (await fetch(`${origoUrl}/v1/login`)).json()) as { csrfToken: string };
  const headers = { "x-csrf-token": csrfToken, "content-type": "application/json" };
  const response = await fetch(`${origoUrl}/v1/publishers`, { method: "POST", headers, body: "{}" });
  if (!response.ok) throw new Error(`Origo made no code for a publisher: ${await response.text()}`);
  return ((await response.json()) as { code: string }).code;
}
