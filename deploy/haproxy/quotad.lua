-- HAProxy asks quotad before it passes a request on. Replace the address and the key.
local url = "http://127.0.0.1:8080/v1/authorize?meter=requests"
local key = "qk_replace_this"

core.register_action("quotad", { "http-req" }, function(txn)
  local answer = core.httpclient():get{
    url = url, timeout = 2000,
    headers = { ["x-quotad-key"] = { key }, ["x-quotad-customer"] = { txn:get_var("txn.customer") } },
  }
  local function header(name) return answer.headers and answer.headers[name] and answer.headers[name][0] or "" end
  txn:set_var("txn.quotad_status", answer.status or 0) -- 0: there was no answer
  txn:set_var("txn.quotad_limits", header("ratelimit"))
  txn:set_var("txn.quotad_policy", header("ratelimit-policy"))
  txn:set_var("txn.quotad_wait", header("retry-after"))
  txn:set_var("txn.quotad_detail", header("x-quotad-detail"))
end)
