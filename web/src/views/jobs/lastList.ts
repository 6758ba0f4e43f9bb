/** The list as it was last looked at, so that a job's page leads back to it. */
const LIST = "#/jobs";
let last = LIST;

/** Only an address of the list counts: it may have changed before the list has left the page. */
export function rememberList(address: string): void {
  if (address === LIST || address.startsWith(`${LIST}?`)) last = address;
}

export function listAddress(): string {
  return last;
}
