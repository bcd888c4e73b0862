/** Renders the provider's pages; surfaces/web/pages implements it, so that the provider contains no HTML. */
export type ProviderViews = {
  /** An error that the protocol defines; `description` is the protocol's own text, without secrets. */
  error(view: { error: string; description: string | undefined; requestId: string }): string;
  /** An internal error; the log has the cause. */
  failed(view: { requestId: string }): string;
  /** The page does not exist. */
  nowhere(view: { requestId: string }): string;
  /** A step of connecting a device that expired, or came from another browser. */
  deviceExpired(view: { requestId: string }): string;
  /** Asks for the code that a device shows. `action` receives `xsrf` and `user_code`. */
  deviceCode(view: { action: string; xsrf: string; userCode: string; problem: string | undefined }): string;
  /** Asks to confirm the device. `action` receives `xsrf`, `user_code` and `confirm=yes` or `abort=yes`. */
  deviceConfirm(view: {
    action: string;
    xsrf: string;
    userCode: string;
    shownCode: string;
    clientName: string;
    address: string | undefined;
  }): string;
  deviceDone(view: { clientName: string }): string;
  /** Asks to confirm the sign-out from the provider. `action` receives `xsrf` and `logout=yes`. */
  signOut(view: { action: string; xsrf: string }): string;
  signedOut(): string;
  /** The Content-Security-Policy of these pages. */
  readonly contentSecurityPolicy: string;
};
