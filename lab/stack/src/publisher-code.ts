/**
 * The one-time code that lets a publisher in, as an admin makes it in the dashboard. `cookie`: the admin's, if Origo
 * has logins.
 */
export async function publisherCode(origoUrl: string, cookie = ""): Promise<string> {
  const login = await fetch(`${origoUrl}/v1/login`, { headers: { cookie } });
  const { csrfToken } = (await login.json()) as { csrfToken: string };
  const headers = { cookie, "x-csrf-token": csrfToken, "content-type": "application/json" };
  const response = await fetch(`${origoUrl}/v1/publishers`, { method: "POST", headers, body: "{}" });
  if (!response.ok) throw new Error(`Origo made no code for a publisher: ${await response.text()}`);
  return ((await response.json()) as { code: string }).code;
}
