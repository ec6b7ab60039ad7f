// SMS units, counted as the API counts them (3GPP TS 23.038; 153 septets or 67 UTF-16 code units each).

const septets = new Map();
for (const character of "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà") {
  septets.set(character, 1);
}
for (const character of "\f^{}\\[~]|€") septets.set(character, 2);

/** The SMS units of a text. Neither an escape pair nor a surrogate pair is split over two units. */
export function units(text) {
  const characters = [...text];
  const gsm = characters.every((character) => septets.has(character));
  const size = gsm ? 153 : 67;
  let count = 0;
  let used = size; // the first character opens the first unit
  for (const character of characters) {
    const length = gsm ? septets.get(character) : character.length;
    if (used + length > size) {
      count++;
      used = 0;
    }
    used += length;
  }
  return count;
}

const isText = (value) => typeof value === "string";

/**
 * What a send would send: recipients and units. null: nothing, as the body is a cost check or is not one that the API
 * would send.
 */
export function sendPlan(body) {
  switch (body?.send_method) {
    case "single":
      return isText(body.to) && isText(body.message) ? { recipients: [body.to], units: units(body.message) } : null;
    case "bulk_same":
      if (body.check_cost === true || !Array.isArray(body.recipients) || !body.recipients.every(isText) || !isText(body.message)) {
        return null;
      }
      return { recipients: body.recipients, units: body.recipients.length * units(body.message) };
    case "bulk_different": {
      const list = body.msg_list;
      if (!Array.isArray(list) || !list.every((item) => isText(item?.to) && isText(item?.msg))) return null;
      return { recipients: list.map((item) => item.to), units: list.reduce((sum, item) => sum + units(item.msg), 0) };
    }
    default:
      return null;
  }
}
